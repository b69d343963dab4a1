package dev.rlock;

import java.util.List;
import java.util.concurrent.ScheduledExecutorService;

/** All keys are at one server. */
final class OneServer implements Router {
    private final Session session;
    private final Places places = new Places();

    OneServer(Connector connector, ScheduledExecutorService timer, long timeout) {
        session = new Session(this, connector, timer, timeout);
    }

    @Override
    public void ask(Asking asking) {
        session.requests.ask(asking);
    }

    @Override
    public Object lock() {
        return this;
    }

    @Override
    public Places places() {
        return places;
    }

    @Override
    public List<Session> sessions() {
        return List.of(session);
    }
}

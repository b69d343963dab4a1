package dev.rlock;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Connects a session, again and again as long as it has work; under its monitor. */
final class Dialler {
    private static final long FIRST = 50;
    private static final long MOST = 1_000;

    private final Connector connector;
    private final Session session;
    private final ScheduledExecutorService timer;
    private final long timeout;
    private boolean busy;
    /** Before the next attempt to reconnect, ms. */
    private long backoff;
    private Throwable last;

    Dialler(Connector connector, Session session, ScheduledExecutorService timer, long timeout) {
        this.connector = connector;
        this.session = session;
        this.timer = timer;
        this.timeout = timeout;
    }

    void dial() {
        if (!busy && session.hasWork()) {
            busy = true;
            timer.schedule(this::attempt, backoff, TimeUnit.MILLISECONDS);
            // For the one after this, unless the server has answered well by then.
            backoff = backoff == 0 ? FIRST : Math.min(MOST, 2 * backoff);
        }
    }

    /** The server answers as a master does. */
    void good() {
        backoff = 0;
    }

    ConnectionException error() {
        return new ConnectionException(
                "no connection within " + timeout + " ms" + (last == null ? "" : ": " + Reply.root(last).getMessage()), last);
    }

    /** Whatever goes wrong, there will be another one. */
    private void attempt() {
        try {
            begin();
        } catch (Throwable error) {
            done(null, error);
        }
    }

    private void begin() {
        String channel = connector.channel();
        var opened = Connector.inThread(connector::subscriber)
                .thenCompose(connection -> Wire.subscribed(connection, channel, connector, session));
        var late = new CompletableFuture<Wire>();
        var end = Late.after(timer,
                () -> late.completeExceptionally(new ConnectionException("the server does not answer", null)), timeout);
        opened.whenComplete((wire, error) -> {
            end.cancel(false);
            boolean first = error == null ? late.complete(wire) : late.completeExceptionally(error);
            if (!first && error == null) {
                wire.close(); // it came after all, when nobody waited any more
            }
        });
        late.whenCompleteAsync((wire, error) -> done(wire, error), timer);
    }

    /** Has the connection listen to another channel; the slot of the one that it had has moved. */
    CompletableFuture<Void> moveChannel(Wire wire) {
        return Connector.inThread(connector::otherChannel)
                .thenCompose(wire::subscribe)
                .orTimeout(timeout, TimeUnit.MILLISECONDS);
    }

    private void done(Wire wire, Throwable error) {
        synchronized (session.lock) {
            busy = false;
            last = error == null ? null : Thrown.cause(error);
            if (wire == null || !session.opened(wire)) {
                var refused = Reply.refused(last);
                if (refused != null) {
                    session.refuse(refused);
                    backoff = session.hasWork() ? backoff : 0; // who asks next is refused at once too
                }
                session.router.unreachable(session);
                dial();
            }
        }
    }
}

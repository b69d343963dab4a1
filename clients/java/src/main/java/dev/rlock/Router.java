package dev.rlock;

import java.util.List;

/** Which session has a key. */
interface Router {
    void ask(Asking asking);

    List<Session> sessions();

    /** What guards its sessions. */
    Object lock();

    /** That are taken up again on another connection. */
    Places places();

    /** Whether keys move between servers. What follows is for those where they do. */
    default boolean moves() {
        return false;
    }

    /** The key is elsewhere now: finds out where, and asks there. */
    default void moved(Asking asking) {}

    default void moved(PendingCommand pending) {}

    /** Its server does not answer; maybe its keys are elsewhere now. */
    default void unreachable(Session session) {}
}

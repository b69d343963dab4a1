package dev.rlock;

/** What a tag stands for: a request, or the hold that it became. */
sealed interface Ticket permits Asking, Holding, Leaving {
    /** In ms. */
    long lease();

    boolean watchdog();

    /** What its lease is for the heartbeat. */
    default long counted() {
        return Heartbeat.counted(lease(), watchdog());
    }
}

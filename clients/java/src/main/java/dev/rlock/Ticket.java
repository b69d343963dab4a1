package dev.rlock;

/** What a tag stands for: a request, or the hold that it became. */
sealed interface Ticket permits Asking, Holding, Leaving {
    /** In ms. */
    long lease();

    /** Whether the server renews it as long as the connection is there. */
    boolean byServer();

    /** What its lease is for the heartbeat. */
    default long counted() {
        return Heartbeat.counted(lease(), byServer());
    }
}

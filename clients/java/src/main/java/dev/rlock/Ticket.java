package dev.rlock;

import java.util.Collection;

/** What a tag stands for: a request, or the hold that it became. */
sealed interface Ticket permits Asking, Holding, Leaving {
    /** A server looks some ten times a second who is silent. */
    long LEAST_PATIENCE = 300;

    /** In ms. */
    long lease();

    /** Whether the server renews it as long as the connection is there. */
    boolean byServer();

    /** What its lease is for the heartbeat. */
    default long counted() {
        return Heartbeat.counted(lease(), byServer());
    }

    /** Of a message. */
    static long tag(String word) {
        try {
            return Long.parseLong(word);
        } catch (NumberFormatException error) {
            return 0; // nobody's
        }
    }

    /** For how long, in ms, this process may be silent: for the longest lease that the server renews, at least. */
    static long patience(Collection<Ticket> all, long least) {
        return all.stream()
                .filter(ticket -> ticket instanceof Holding && ticket.byServer())
                .mapToLong(Ticket::counted)
                .reduce(Math.max(least, LEAST_PATIENCE), Math::max);
    }
}

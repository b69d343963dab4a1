package dev.rlock;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Renews what a server without the module does not: each hold every third of its lease, by one timer,
 * all that are due together. Under the session's lock.
 */
final class Renewals {
    private final Session session;
    private final Consumer<Holding> renew;
    private final Set<Holding> all = new LinkedHashSet<>();
    private Future<?> timer;
    private long due;

    Renewals(Session session, Consumer<Holding> renew) {
        this.session = session;
        this.renew = renew;
    }

    void add(Holding holding) {
        all.add(holding);
        schedule(at(holding));
    }

    void remove(Holding holding) {
        all.remove(holding);
    }

    /** A third of its lease after it was renewed last. */
    private static long at(Holding holding) {
        return holding.renewed() + Math.min(holding.lease(), 1L << 42) * Millis.NANOS / 3;
    }

    /** Unless there is a look before that. */
    private void schedule(long at) {
        if (timer == null || at - due < 0) {
            if (timer != null) {
                timer.cancel(false);
            }
            due = at;
            timer = session.timer.schedule(this::look, Math.max(0, at - System.nanoTime()), TimeUnit.NANOSECONDS);
        }
    }

    private void look() {
        synchronized (session.lock) {
            timer = null;
            long now = System.nanoTime();
            long next = Long.MAX_VALUE;
            for (Holding holding : List.copyOf(all)) {
                long each = Math.max(1, holding.lease()) * Millis.NANOS / 12;
                if (at(holding) - now > each / 2) {
                    next = Math.min(next, at(holding) - now);
                    continue;
                }
                // What comes soon goes along. The program's own renewal is to be the last word.
                if (holding.renewals == 0) {
                    renew.accept(holding);
                }
                next = Math.min(next, each);
            }
            if (next != Long.MAX_VALUE) {
                schedule(now + next);
            }
        }
    }
}

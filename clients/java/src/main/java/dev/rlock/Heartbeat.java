package dev.rlock;

import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * When to ask a connection whether it is alive, and when it counts as dead: if the last proof is
 * older than the shortest lease. Used under its session's monitor.
 */
final class Heartbeat {
    private static final long IDLE = 10_000;
    /**
     * A shorter lease counts as one of so long: no network answers as soon as that for certain, and
     * with the connection all other holds would be lost too. One that the server does not renew does not end
     * with it.
     */
    private static final long LEAST = 100;

    private static final long LEAST_PLAIN = 5000;

    private final ScheduledExecutorService timer;
    private final Runnable tick;
    /** How many holds and waits have this lease. */
    private final TreeMap<Long, Integer> leases = new TreeMap<>();
    /** When the connection was known to be alive, or the shortest lease began to count. */
    private long proof;
    /** Not dead before: this process itself was paused. */
    private long spared;
    /** Once for each proof. */
    private long sparedAfter;
    /** When the next look is to be. */
    private long due;
    private Future<?> next;

    Heartbeat(ScheduledExecutorService timer, Runnable tick) {
        this.timer = timer;
        this.tick = tick;
    }

    /** What a lease is for the heartbeat. */
    static long counted(long lease, boolean byServer) {
        return Math.max(lease, byServer ? LEAST : LEAST_PLAIN);
    }

    private long shortest() {
        return leases.isEmpty() ? IDLE : Math.min(leases.firstKey(), 1L << 42);
    }

    void start(long since) {
        proof = since;
        spared = since;
        sparedAfter = since - 1;
        leases.clear();
        schedule();
    }

    void stop() {
        if (next != null) {
            next.cancel(false);
            next = null;
        }
    }

    /** True if a beat is due now, for this lease is shorter than all others. */
    boolean add(long lease) {
        boolean shorter = lease < shortest();
        leases.merge(lease, 1, Integer::sum);
        if (shorter) {
            proof = System.nanoTime();
            stop();
            schedule();
        }
        return shorter;
    }

    void remove(long lease) {
        leases.computeIfPresent(lease, (key, many) -> many == 1 ? null : many - 1);
    }

    void proven(long sent) {
        if (sent - proof > 0) {
            proof = sent;
        }
    }

    private long third() {
        return shortest() * Millis.NANOS / 3;
    }

    /** Asked once for each look. */
    boolean isDead() {
        long now = System.nanoTime();
        if (now - due > third() && sparedAfter != proof) {
            sparedAfter = proof;
            // The replies may lie there unread, and so may the news that the connection was closed.
            // Those are read first, and the server has a third to answer.
            spared = now + third();
        }
        return now - end() >= 0;
    }

    private long end() {
        long end = Millis.after(proof, shortest());
        return spared - end > 0 ? spared : end;
    }

    void schedule() {
        long now = System.nanoTime();
        long in = Math.max(0, Math.min(third(), end() - now));
        due = now + in;
        next = timer.schedule(tick, in, TimeUnit.NANOSECONDS);
    }
}

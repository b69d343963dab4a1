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

    private final ScheduledExecutorService timer;
    private final Runnable tick;
    /** How many holds and waits have this lease. */
    private final TreeMap<Long, Integer> leases = new TreeMap<>();
    /** When the connection was known to be alive, or the shortest lease began to count. */
    private long proof;
    private Future<?> next;

    Heartbeat(ScheduledExecutorService timer, Runnable tick) {
        this.timer = timer;
        this.tick = tick;
    }

    private long shortest() {
        return leases.isEmpty() ? IDLE : Math.min(leases.firstKey(), 1L << 42);
    }

    void start(long since) {
        proof = since;
        leases.clear();
        schedule();
    }

    void stop() {
        if (next != null) {
            next.cancel(false);
            next = null;
        }
    }

    /** True if a PING is due now, for this lease is shorter than all others. */
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

    boolean isDead() {
        return System.nanoTime() - Millis.after(proof, shortest()) >= 0;
    }

    void schedule() {
        long third = shortest() * Millis.NANOS / 3;
        long end = Millis.after(proof, shortest()) - System.nanoTime();
        next = timer.schedule(tick, Math.max(0, Math.min(third, end)), TimeUnit.NANOSECONDS);
    }
}

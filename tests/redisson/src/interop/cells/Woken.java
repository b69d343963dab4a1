package interop.cells;

import interop.harness.Actor;
import interop.harness.Check;
import interop.harness.Site;
import interop.harness.Times;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;

/** A waiter is woken by the other side's release, long before any lease ends. */
public final class Woken implements Column {
    private static final long LEASE_MS = 60_000;
    private static final long BOUND_MS = 5_000;
    private static final int ROUNDS = 20;

    private final boolean cluster;

    public Woken() {
        this(false);
    }

    /** In a cluster Redisson waits on sharded channels. */
    public Woken(boolean cluster) {
        this.cluster = cluster;
    }

    @Override
    public String title() {
        return "woken after: median / max";
    }

    @Override
    public Site open() {
        return cluster ? Site.cluster() : Site.open();
    }

    @Override
    public String check(Pair pair) {
        Times times = new Times();
        // The first round warms up classes and connections; it must hold, and is not shown.
        round(pair);
        for (int round = 0; round < ROUNDS; round++) {
            times.add(round(pair));
        }
        return times.shown();
    }

    /** How long it takes from before the release is sent until the other side has the lock. */
    public static long round(Pair pair) {
        Check.that(pair.holder.tryLock(LEASE_MS), "the holder takes it");
        Future<Long> entered = pair.waiter.beginLock(LEASE_MS);
        // At any moment of a spin lock's sleep.
        LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(20_000_000));
        Check.that(!entered.isDone(), "it waits while the other holds it");
        long released = System.nanoTime();
        pair.holder.unlock();
        long woken = Actor.await(entered, BOUND_MS) - released;
        pair.waiter.unlock();
        return woken;
    }
}

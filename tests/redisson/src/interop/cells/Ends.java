package interop.cells;

import interop.harness.Actor;
import interop.harness.Check;
import interop.harness.Times;
import java.util.concurrent.Future;

/** A waiter comes in when the lease of the other side's holder ends, and not before. */
public final class Ends implements Column {
    private static final long LEASE_MS = 300;
    private static final long WAITERS_LEASE_MS = 60_000;
    private static final long BOUND_MS = LEASE_MS + 5_000;
    private static final int ROUNDS = 3;

    /** Deadlines are whole ms, so a lease may be that much shorter. */
    private static final long GRAIN_NS = 1_000_000;

    @Override
    public String title() {
        return "lease ends, in after";
    }

    @Override
    public String check(Pair pair) {
        Times times = new Times();
        for (int round = 0; round < ROUNDS; round++) {
            long asked = System.nanoTime();
            // The waiter of the round before may still listen, and so have a turn that it needs no more.
            long had = Actor.await(pair.holder.beginLock(LEASE_MS), BOUND_MS);
            Future<Long> waiting = pair.waiter.beginLock(WAITERS_LEASE_MS);
            long entered = Actor.await(waiting, BOUND_MS);
            Check.that(entered - asked >= LEASE_MS * 1_000_000 - GRAIN_NS,
                    "in after " + Times.shown(entered - asked) + ", the lease is longer");
            times.add(Math.max(0, entered - had - LEASE_MS * 1_000_000));
            pair.waiter.unlock();
        }
        return times.shown();
    }
}

package interop.cells;

import interop.harness.Actor;
import interop.harness.Check;
import interop.harness.Times;
import interop.kinds.Part;
import java.util.concurrent.Future;

/** A waiter comes in when somebody of either side frees the lock of the other side's holder. */
public final class Forced implements Column {
    private static final long LEASE_MS = 60_000;
    private static final long BOUND_MS = 5_000;
    private static final int ROUNDS = 5;

    private final boolean byRedisson;

    public Forced(boolean byRedisson) {
        this.byRedisson = byRedisson;
    }

    @Override
    public String title() {
        return byRedisson ? "forceUnlock" : "RLOCK.FORCE";
    }

    @Override
    public String check(Pair pair) {
        Times times = new Times();
        for (int round = 0; round < ROUNDS; round++) {
            Check.that(pair.holder.tryLock(LEASE_MS), "the holder takes it");
            Future<Long> entered = pair.waiter.beginLock(LEASE_MS);
            long forced = System.nanoTime();
            pair.parts().forEach(part -> force(pair, part));
            times.add(Actor.await(entered, BOUND_MS) - forced);
            pair.waiter.unlock();
        }
        return times.shown();
    }

    private void force(Pair pair, Part part) {
        if (byRedisson) {
            Check.that(part.of(pair.application).forceUnlock(), "it was locked");
        } else {
            Object freed = pair.site.control(part.server()).call("RLOCK.FORCE", part.key());
            Check.equal(1L, freed, "RLOCK.FORCE");
        }
    }
}

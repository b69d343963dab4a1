package interop.cells;

import interop.harness.Check;

/** What one side holds the other cannot take. */
public final class Refused implements Column {
    private static final long LEASE_MS = 60_000;

    @Override
    public String title() {
        return "refused";
    }

    @Override
    public String check(Pair pair) {
        Check.that(pair.holder.tryLock(LEASE_MS), "the holder takes a free lock");
        Check.that(!pair.waiter.tryLock(LEASE_MS), "the other side is refused");
        pair.holder.unlock();
        Check.that(pair.waiter.tryLock(LEASE_MS), "the other side takes it when it is free");
        Check.that(!pair.holder.tryLock(LEASE_MS), "and then refuses the first");
        pair.waiter.unlock();
        Check.that(pair.holder.tryLock(LEASE_MS), "it is free again");
        pair.holder.unlock();
        return "ok";
    }
}

package interop.cells;

import interop.harness.Check;
import interop.harness.Contender;
import interop.harness.Info;
import interop.kinds.Part;
import org.redisson.api.RLock;

/** Holder, count of holds and remaining lease read the same from both sides. */
public final class SameView implements Column {
    private static final long LEASE_MS = 60_000;

    @Override
    public String title() {
        return "same view";
    }

    @Override
    public String check(Pair pair) {
        int nested = pair.redissonHolds() && !pair.kind.nests() ? 1 : 2;
        for (int holds = 1; holds <= nested; holds++) {
            Check.that(pair.holder.tryLock(LEASE_MS), "the holder takes it");
            for (Part part : pair.parts()) {
                look(pair, part, holds);
            }
        }
        for (int holds = nested; holds > 0; holds--) {
            pair.holder.unlock();
        }
        for (Part part : pair.parts()) {
            Check.equal("free", Info.of(pair.site.control(part.server()), part.key()).mode(),
                    "INFO of a free lock");
            Check.that(!part.of(pair.application).isLocked(), "not locked for Redisson");
        }
        return "ok";
    }

    private static void look(Pair pair, Part part, int holds) {
        RLock lock = part.of(pair.application);
        // What Redisson calls the holder. One by our majority is of the first server's name.
        String owner = pair.redissonHolds()
                ? pair.application.owner(part.server(), pair.holder.threadId())
                : pair.application.owner(0, pair.holder.threadId());
        Info info = Info.of(pair.site.control(part.server()), part.key());
        Check.equal(owner, info.holder().owner(), "owner by INFO");
        Check.equal(part.mode().word(), info.holder().mode(), "mode by INFO");
        Check.equal((long) holds, info.holder().holds(), "holds by INFO");
        Check.that(lock.isLocked(), "locked for Redisson");
        if (pair.redissonHolds() || part.server() == 0) {
            Check.that(lock.isHeldByThread(pair.holder.threadId()), "held by that thread");
            int count = pair.holder.<Integer>ask((Contender nobody) -> lock.getHoldCount());
            Check.equal(holds, count, "holds by Redisson");
        }
        Check.that(!lock.isHeldByThread(pair.waiter.threadId()), "not held by another thread");
        remaining(pair, part, lock);
    }

    /** The remaining lease falls all the time, so one look lies between two of the other side. */
    private static void remaining(Pair pair, Part part, RLock lock) {
        long before = lock.remainTimeToLive();
        long middle = Info.of(pair.site.control(part.server()), part.key()).holder().remaining();
        long after = lock.remainTimeToLive();
        Check.that(before >= middle && middle >= after && after > 0,
                "remaining lease: " + before + " >= " + middle + " >= " + after);
    }
}

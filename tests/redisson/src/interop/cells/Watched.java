package interop.cells;

import interop.harness.Actor;
import interop.harness.Check;
import interop.harness.Contender;
import interop.harness.Info;
import interop.harness.Site;
import interop.harness.Times;
import interop.kinds.Part;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;

/**
 * A lock that is renewed, by Redisson's watchdog or the server's, stays held while the
 * other side waits, for much longer than one lease.
 */
public final class Watched implements Column {
    private static final long TIMEOUT_MS = 3_000;
    private static final long HELD_MS = 7_000;
    private static final long WAITERS_LEASE_MS = 60_000;
    private static final long BOUND_MS = 5_000;

    @Override
    public String title() {
        return "watchdog";
    }

    @Override
    public Site open() {
        return Site.withWatchdog(TIMEOUT_MS);
    }

    @Override
    public boolean together() {
        return true;
    }

    @Override
    public String check(Pair pair) {
        Check.that(pair.holder.tryLock(Contender.WATCHED), "the holder takes it");
        Future<Long> entered = pair.waiter.beginLock(WAITERS_LEASE_MS);
        long end = System.nanoTime() + HELD_MS * 1_000_000;
        while (System.nanoTime() < end) {
            Check.that(!entered.isDone(), "nobody comes in while it is renewed");
            for (Part part : pair.parts()) {
                Info info = Info.of(pair.site.control(part.server()), part.key());
                Check.that(info.holder().remaining() <= TIMEOUT_MS, "a short lease: " + info);
            }
            LockSupport.parkNanos(50_000_000);
        }
        long released = System.nanoTime();
        pair.holder.unlock();
        long woken = Actor.await(entered, BOUND_MS) - released;
        pair.waiter.unlock();
        return HELD_MS / 1000 + " s, then " + Times.shown(woken);
    }
}

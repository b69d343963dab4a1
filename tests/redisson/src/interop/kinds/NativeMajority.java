package interop.kinds;

import interop.harness.Contender;
import interop.harness.Resp;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;

/** An owner that holds a lock if it holds it on more than half of several servers. */
final class NativeMajority implements Contender {
    /** How long it waits for one server before it goes on to the next. */
    private static final long PATIENCE_MS = 200;

    private final List<NativeLock> locks;
    private final List<NativeLock> held = new ArrayList<>();

    NativeMajority(List<NativeLock> locks) {
        this.locks = locks;
    }

    @Override
    public boolean tryLock(long leaseMs) {
        return round(leaseMs, 0);
    }

    @Override
    public boolean lock(long waitMs, long leaseMs) {
        long end = System.nanoTime() + waitMs * 1_000_000;
        while (!round(leaseMs, PATIENCE_MS)) {
            if (System.nanoTime() > end) {
                return false;
            }
            // Two that disturb each other must not do so again at the same time.
            LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(10_000_000));
        }
        return true;
    }

    @Override
    public void lock(long leaseMs) {
        lock(Long.MAX_VALUE / 2_000_000, leaseMs);
    }

    private boolean round(long leaseMs, long patienceMs) {
        List<NativeLock> got = new ArrayList<>();
        for (NativeLock lock : locks) {
            if (patienceMs == 0 ? lock.tryLock(leaseMs) : lock.lock(patienceMs, leaseMs)) {
                got.add(lock);
            }
        }
        if (got.size() > locks.size() / 2) {
            held.addAll(got);
            return true;
        }
        release(got);
        return false;
    }

    @Override
    public void unlock() {
        release(held);
        held.clear();
    }

    private static void release(List<NativeLock> locks) {
        for (NativeLock lock : locks) {
            try {
                lock.unlock();
            } catch (Resp.Refusal over) {
                // Its lease ended, or somebody forced it.
            }
        }
    }

    @Override
    public boolean waits(Thread thread) {
        return locks.stream().anyMatch(lock -> lock.waits(thread));
    }

    @Override
    public void close() {
        locks.forEach(NativeLock::close);
    }
}

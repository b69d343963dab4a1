package interop.kinds;

import interop.harness.Contender;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/** A thread that uses a lock of Redisson's, by the blocking methods that most programs use. */
final class RedissonContender implements Contender {
    private static final Set<Thread.State> SLEEPS =
            EnumSet.of(Thread.State.WAITING, Thread.State.TIMED_WAITING);

    private final RLock lock;

    RedissonContender(RLock lock) {
        this.lock = lock;
    }

    @Override
    public boolean tryLock(long leaseMs) {
        return leaseMs == WATCHED ? lock.tryLock() : lock(-1, leaseMs);
    }

    @Override
    public boolean lock(long waitMs, long leaseMs) {
        try {
            return lock.tryLock(waitMs, leaseMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void lock(long leaseMs) {
        if (leaseMs == WATCHED) {
            lock.lock();
        } else {
            lock.lock(leaseMs, TimeUnit.MILLISECONDS);
        }
    }

    @Override
    public void unlock() {
        lock.unlock();
    }

    /** It tried in vain, and now sleeps until it is woken (a spin lock: until its next try). */
    @Override
    public boolean waits(Thread thread) {
        boolean inside = Arrays.stream(thread.getStackTrace())
                .map(frame -> frame.getClassName() + "." + frame.getMethodName())
                .anyMatch(frame -> frame.startsWith("java.util.concurrent.Semaphore.")
                        || frame.equals("java.lang.Thread.sleep"));
        // A message that comes before it sleeps may be lost to it (`1` is, by Redisson).
        return inside && SLEEPS.contains(thread.getState());
    }
}

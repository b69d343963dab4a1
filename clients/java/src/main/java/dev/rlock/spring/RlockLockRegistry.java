package dev.rlock.spring;

import dev.rlock.Locks;
import dev.rlock.Request;
import dev.rlock.ThreadLock;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.locks.Lock;
import org.springframework.integration.support.locks.LockRegistry;

/**
 * Spring Integration's locks by rlock: {@link ThreadLock}s, which a thread holds and nests. The
 * registry keeps nothing: there is nothing to expire, and nothing to renew, for the server does.
 *
 * <p>A {@link Lock} cannot report that it was lost. Those of this registry are {@code ThreadLock}s:
 * ask {@link ThreadLock#isHeldAndNotLost}.
 */
public final class RlockLockRegistry implements LockRegistry<Lock> {
    private final Locks locks;
    private final String prefix;
    private final Duration lease;

    /**
     * With a lease of 10 s.
     *
     * @param locks over which to lock; they stay the caller's
     * @param prefix what stands before each key, such as the name of the application and a colon
     */
    public RlockLockRegistry(Locks locks, String prefix) {
        this(locks, prefix, Duration.ofSeconds(10));
    }

    /**
     * With a lease of one's own.
     *
     * @param locks over which to lock; they stay the caller's
     * @param prefix what stands before each key, such as the name of the application and a colon
     * @param lease how long a lock stays held after its process or machine is gone without a word
     */
    public RlockLockRegistry(Locks locks, String prefix, Duration lease) {
        this.locks = Objects.requireNonNull(locks, "locks");
        this.prefix = Objects.requireNonNull(prefix, "prefix");
        this.lease = Objects.requireNonNull(lease, "lease");
        obtain("any"); // a wrong prefix or lease fails here
    }

    /**
     * The lock.
     *
     * @param key a String, as for Spring's own registries: another object may have another text in
     *     each process
     * @throws IllegalArgumentException if it is none, or empty
     */
    @Override
    public ThreadLock obtain(Object key) {
        if (!(key instanceof String name) || name.isEmpty()) {
            throw new IllegalArgumentException("a key is a String that is not empty: " + key);
        }
        return locks.lock(Request.of(prefix + name).lease(lease)).reportingLoss();
    }
}

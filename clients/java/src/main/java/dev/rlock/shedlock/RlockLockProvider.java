package dev.rlock.shedlock;

import dev.rlock.Hold;
import dev.rlock.Locks;
import dev.rlock.LostException;
import dev.rlock.Request;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;

/**
 * ShedLock by rlock: each lock is a plain lease of {@code lockAtMostFor}, which nobody renews and
 * which outlives its connection. To unlock before {@code lockAtLeastFor} is over, or to close the
 * {@link Locks}, shortens the lease to what is left of it. After that time {@code Locks.close}
 * frees the lock, also while its job runs: end the jobs before.
 *
 * <p>A {@link SimpleLock} cannot report that it was lost. {@code extend} can: it gives nothing then.
 * {@code unlock} says nothing, as with ShedLock's other providers.
 */
public final class RlockLockProvider implements ExtensibleLockProvider {
    private final Locks locks;
    private final String prefix;

    /**
     * With the prefix {@code shedlock:}.
     *
     * @param locks over which to lock; they stay the caller's
     */
    public RlockLockProvider(Locks locks) {
        this(locks, "shedlock:");
    }

    /**
     * With a prefix of its own.
     *
     * @param locks over which to lock; they stay the caller's
     * @param prefix what stands before the name of each lock
     */
    public RlockLockProvider(Locks locks, String prefix) {
        this.locks = Objects.requireNonNull(locks, "locks");
        this.prefix = Objects.requireNonNull(prefix, "prefix");
    }

    @Override
    public Optional<SimpleLock> lock(LockConfiguration configuration) {
        Duration left = Duration.between(ClockProvider.now(), configuration.getLockAtMostUntil());
        if (left.isNegative() || left.isZero()) {
            return Optional.empty();
        }
        try {
            return locks.tryAcquire(Request.of(prefix + configuration.getName())
                            .watchdog(false)
                            .lease(left))
                    .map(hold -> (SimpleLock) new Lock(hold, configuration));
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new LockException("interrupted", error);
        }
    }

    private static final class Lock extends AbstractSimpleLock {
        private final Hold hold;

        Lock(Hold hold, LockConfiguration configuration) {
            super(configuration);
            this.hold = hold;
            hold.atLeast(Duration.between(ClockProvider.now(), configuration.getLockAtLeastUntil()));
        }

        @Override
        protected void doUnlock() {
            try {
                hold.release();
            } catch (LostException error) {
                // Its time was over: it is unlocked.
            }
        }

        @Override
        protected Optional<SimpleLock> doExtend(LockConfiguration configuration) {
            Duration left = Duration.between(ClockProvider.now(), configuration.getLockAtMostUntil());
            try {
                // A time that is over by now ends it all the same.
                hold.renew(left.isNegative() || left.isZero() ? Duration.ofMillis(1) : left);
                return Optional.of(new Lock(hold, configuration));
            } catch (LostException error) {
                return Optional.empty();
            }
        }
    }
}

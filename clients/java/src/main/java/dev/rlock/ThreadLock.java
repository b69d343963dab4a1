package dev.rlock;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/**
 * A lock in the form of java.util.concurrent: a thread holds it, takes it again as often as it
 * likes, and unlocks it as often. From {@link Locks#lock} and {@link Locks#readWriteLock}.
 *
 * <p><b>A {@code Lock} cannot tell that it was lost.</b> Its server may be restarted, its
 * connection may break, somebody may force it; the code between {@code lock} and {@code unlock}
 * goes on and is not alone any more. Ask {@link #isHeldAndNotLost} between the steps, or take
 * {@link #hold} for its token, which storage can check, and to be told of the loss. After a loss
 * each {@code unlock} throws {@link IllegalMonitorStateException}, and to lock it again before
 * that is {@link LostException}. Where you can, use {@link Locks#acquire} instead.
 *
 * <p>All locks that a thread holds at a time share one owner, so that the server sees when threads
 * wait for each other, also those of two processes: the {@code lock} that would never return
 * throws {@link DeadlockException}.
 *
 * <p>Errors other than these: {@link RefusedException}, and {@link ConnectionException} from
 * {@code tryLock}; {@code lock} waits for a connection as it does for the lock.
 */
public final class ThreadLock implements Lock {
    private final Threads threads;
    private final Request request;
    private final Threads.Place place;

    ThreadLock(Threads threads, Request request) {
        if (request.keys.size() > 1 || request.job != null) {
            throw new IllegalArgumentException("one key, and no job");
        }
        this.threads = threads;
        this.request = request;
        place = new Threads.Place(request.key(), request.mode);
    }

    private Threads.Held held() {
        return threads.held(place);
    }

    /** Once more, if this thread has it. */
    private boolean nests() {
        var held = held();
        if (held == null) {
            return false;
        }
        if (held.hold.isLost()) {
            throw new LostException(request.key(), held.hold.lossReason());
        }
        held.times++;
        return true;
    }

    @Override
    public void lock() {
        if (nests()) {
            return;
        }
        var asking = ask(request.waitingForEver());
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    threads.put(place, new Hold(asking.end.get()));
                    return;
                } catch (InterruptedException error) {
                    interrupted = true;
                } catch (ExecutionException error) {
                    throw Locks.thrown(error.getCause());
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        if (!nests()) {
            await(request.waitingForEver());
        }
    }

    @Override
    public boolean tryLock() {
        if (nests()) {
            return true;
        }
        var asking = ask(request.waiting(Duration.ZERO));
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    threads.put(place, new Hold(asking.end.get()));
                    return true;
                } catch (InterruptedException error) {
                    interrupted = true; // a try is short
                } catch (ExecutionException error) {
                    if (error.getCause() instanceof NotAcquiredException) {
                        return false;
                    }
                    throw Locks.thrown(error.getCause());
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        if (nests()) {
            return true;
        }
        try {
            await(waiting(time, unit));
            return true;
        } catch (NotAcquiredException error) {
            return false;
        }
    }

    private Request waiting(long time, TimeUnit unit) {
        if (time <= 0) {
            return request.waiting(Duration.ZERO);
        }
        // Long.MAX_VALUE of whatever unit is a way to say for ever.
        return unit.toDays(time) > 36_500 ? request.waitingForEver() : request.waiting(Duration.of(time, unit.toChronoUnit()));
    }

    private Asking ask(Request request) {
        return threads.locks.ask(request, threads.job(), new Job.Place(place));
    }

    private void await(Request request) throws InterruptedException {
        var asking = ask(request);
        try {
            threads.put(place, new Hold(asking.end.get()));
        } catch (InterruptedException error) {
            threads.locks.giveUp(asking);
            throw error;
        } catch (ExecutionException error) {
            throw Locks.thrown(error.getCause());
        }
    }

    /**
     * Unlocks it; the last of this thread's unlocks releases it.
     *
     * @throws IllegalMonitorStateException if this thread does not hold it, or it was lost (with
     *     {@link LostException} as the cause)
     */
    @Override
    public void unlock() {
        var held = held();
        if (held == null) {
            throw new IllegalMonitorStateException(request.key() + " is not held by this thread");
        }
        try {
            if (--held.times == 0) {
                threads.remove(place);
                held.hold.release();
            } else if (held.hold.isLost()) {
                throw new LostException(request.key(), held.hold.lossReason());
            }
        } catch (LostException error) {
            var wrong = new IllegalMonitorStateException(error.getMessage());
            wrong.initCause(error);
            throw wrong;
        }
    }

    /**
     * Not supported.
     *
     * @throws UnsupportedOperationException always
     */
    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException();
    }

    /**
     * Whether this thread holds it, and it was not lost.
     *
     * @return true if it does
     */
    public boolean isHeldAndNotLost() {
        return hold().filter(hold -> !hold.isLost()).isPresent();
    }

    /**
     * Whether this thread has locked it more often than unlocked, lost or not.
     *
     * @return true if it has
     */
    public boolean isHeldByCurrentThread() {
        return held() != null;
    }

    /**
     * How often this thread has locked it and not unlocked it.
     *
     * @return 0 if it does not hold it
     */
    public int getHoldCount() {
        var held = held();
        return held == null ? 0 : held.times;
    }

    /**
     * What this thread holds by this lock: with the token, and with word of the loss. Do not
     * release it; {@link #unlock} does.
     *
     * @return nothing if this thread does not hold it
     */
    public Optional<Hold> hold() {
        return Optional.ofNullable(held()).map(held -> held.hold);
    }

    @Override
    public String toString() {
        return "ThreadLock[" + request.key() + (isHeldByCurrentThread() ? ", held by this thread]" : "]");
    }
}

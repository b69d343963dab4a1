package dev.rlock;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/**
 * A lock in the form of java.util.concurrent: a thread holds it, takes it again as often as it
 * likes, and unlocks it as often. From {@link Locks#lock} and {@link Locks#readWriteLock}.
 *
 * <p><b>A {@code Lock} cannot report that it was lost.</b> Its server may be restarted, its
 * connection may break, somebody may force it; the code between {@code lock} and {@code unlock}
 * goes on and is not alone any more. Ask {@link #isHeldAndNotLost} between the steps, or take
 * {@link #hold} for its token, which storage can check, and to be notified of the loss. After a loss
 * each {@code unlock} throws {@link IllegalMonitorStateException}; who locks it again begins anew,
 * and what was lost is forgotten. Where you can, use {@link Locks#acquire} instead.
 *
 * <p>A nested acquisition lengthens the lease to its own at least. Whether the server renews it,
 * the first one has said.
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
    private final boolean reportsLoss;

    ThreadLock(Threads threads, Request request) {
        this(threads, request, false);
    }

    private ThreadLock(Threads threads, Request request, boolean reportsLoss) {
        if (request.keys.size() > 1 || request.job != null) {
            throw new IllegalArgumentException("one key, and no job");
        }
        this.threads = threads;
        this.request = request;
        place = new Threads.Place(request.key(), request.mode);
        this.reportsLoss = reportsLoss;
    }

    /**
     * The same lock for who locks it again and again to see whether it still has it, as Spring's
     * election of a leader does. After a loss that its thread has not asked about, the next
     * {@code lock} or {@code tryLock} throws {@link LostException}, once, in place of beginning anew.
     *
     * @return the lock
     */
    public ThreadLock reportingLoss() {
        return new ThreadLock(threads, request, true);
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
        try {
            if (!held.hold.isLost()) {
                held.hold.lengthen(request.lease);
                held.hold.nest(1);
                held.times++;
                return true;
            }
        } catch (LostException error) {
            // It was, and nobody knew.
        }
        threads.remove(place);
        if (reportsLoss && !held.lossReported) {
            throw new LostException(request.key(), held.hold.lossReason());
        }
        return false;
    }

    @Override
    public void lock() {
        uninterruptibly(request.waitingForEver());
    }

    @Override
    public boolean tryLock() {
        try {
            uninterruptibly(request.waiting(Duration.ZERO)); // which is short
            return true;
        } catch (NotAcquiredException error) {
            return false;
        }
    }

    private void uninterruptibly(Request request) {
        if (!nests()) {
            var asking = ask(request);
            threads.put(place, threads.asks.awaitUninterruptibly(asking), asking.job);
        }
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
        interruptibly(request.waitingForEver());
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        try {
            interruptibly(waiting(time, unit));
            return true;
        } catch (NotAcquiredException error) {
            return false;
        }
    }

    private void interruptibly(Request request) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        if (!nests()) {
            var asking = ask(request);
            threads.put(place, threads.asks.await(asking), asking.job);
        }
    }

    private Asking ask(Request request) {
        var other = switch (request.mode) {
            case READ -> threads.held(new Threads.Place(request.key(), Mode.WRITE));
            case WRITE -> threads.held(new Threads.Place(request.key(), Mode.READ));
            default -> null;
        };
        return threads.asks.ask(request, threads.job(), new Job.Place(place, other == null ? null : other.hold.owner()));
    }

    private Request waiting(long time, TimeUnit unit) {
        if (time <= 0) {
            return request.waiting(Duration.ZERO);
        }
        // Long.MAX_VALUE of whatever unit is a way to say for ever.
        return unit.toDays(time) > 36_500 ? request.waitingForEver() : request.waiting(Duration.of(time, unit.toChronoUnit()));
    }

    /**
     * Unlocks it; the last of this thread's unlocks releases it.
     *
     * @throws IllegalMonitorStateException if this thread does not hold it, or it was lost (with
     *     {@link LostException} as the cause)
     */
    @Override
    public void unlock() {
        Room.take();
        var held = held();
        if (held == null) {
            throw new IllegalMonitorStateException(request.key() + " is not held by this thread");
        }
        try {
            if (--held.times == 0) {
                threads.remove(place);
                held.hold.end();
            } else if (held.hold.lossReason() != null) {
                throw new LostException(request.key(), held.hold.lossReason());
            } else {
                held.hold.nest(-1);
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
        return getHoldCount() > 0;
    }

    /**
     * The same: what was lost is not held.
     *
     * @return true if {@link #unlock} has something to release
     */
    public boolean isHeldByCurrentThread() {
        return getHoldCount() > 0;
    }

    /**
     * How often this thread has locked it and not unlocked it.
     *
     * @return 0 if it does not hold it, or it was lost
     */
    public int getHoldCount() {
        var held = held();
        if (held != null && held.hold.isLost()) {
            held.lossReported = true;
        }
        return held == null || held.lossReported ? 0 : held.times;
    }

    /**
     * What this thread has locked by this lock, lost or not: with the token, and with word of the
     * loss. Do not release it; {@link #unlock} does. It {@linkplain Hold#giveWay(Duration, Duration) gives way} only while it
     * is locked once.
     *
     * @return nothing if this thread does not hold it
     */
    public Optional<Hold> hold() {
        return Optional.ofNullable(held()).map(held -> held.hold);
    }

    @Override
    public String toString() {
        return "ThreadLock[" + request.key() + (held() == null ? "]" : ", locked by this thread]");
    }
}

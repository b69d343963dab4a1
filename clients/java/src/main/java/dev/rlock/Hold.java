package dev.rlock;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A lock that is held, until it is released or lost. It is the program's, not a thread's: any
 * thread may release it.
 *
 * <p>A hold can be lost: somebody forces or deletes it, its lease ends, or its connection breaks.
 * Then another may hold the lock. Ask {@link #isLost} between the steps of your work, or stop it by
 * {@link #lost}; and give {@link #token} to the storage, so that it refuses what comes too late.
 */
public final class Hold implements AutoCloseable {
    /** Another one once it has given way. */
    volatile Holding holding;
    private final Asks asks;
    private final AtomicBoolean released = new AtomicBoolean();
    /** While it gives way; under the session's lock. */
    Way way;

    Hold(Holding holding, Asks asks) {
        this.holding = holding;
        this.asks = asks;
    }

    /**
     * The lock.
     *
     * @return its key; of several the first
     */
    public String key() {
        return holding.request.key();
    }

    /**
     * The locks.
     *
     * @return the keys, as they were asked for
     */
    public List<String> keys() {
        return holding.request.keys;
    }

    /**
     * The owner, as {@code RLOCK.INFO} names it.
     *
     * @return {@code host:pid:uuid}
     */
    public String owner() {
        return holding.target.owner();
    }

    /**
     * The fencing token: each new hold of a lock has a greater one. Storage that refuses smaller
     * ones than it has seen is safe from a program that goes on after its hold was lost.
     *
     * @return the token
     */
    public long token() {
        return holding.token;
    }

    /**
     * Whether the hold was lost. Once lost it is lost for good. False also after the release of
     * one that was not lost before.
     *
     * @return true if it was
     */
    public boolean isLost() {
        return lossReason() != null;
    }

    /** How it was lost, or null. */
    String lossReason() {
        Holding now = holding;
        if (!now.isOver()) {
            return now.lost;
        }
        Room.take();
        return Calls.call(now::lost);
    }

    /**
     * Completes, never with an error, when the hold is lost; never if it is released first.
     *
     * <p>What depends on it is run by another thread than the one that reads the connection, and may
     * block: no other callback waits until it is done.
     *
     * @return with what {@link #release} would throw
     */
    public CompletionStage<LostException> lost() {
        Room.take();
        return Calls.call(() -> {
            synchronized (holding.lock) {
                return holding.lostLater();
            }
        });
    }

    /**
     * Whether somebody waits whom the release of this hold would serve: a hint for work that can stop, or give way, between
     * two pieces. It may come late, and be out of date. Those who only try count for nothing.
     *
     * <p>The first use of this, or of {@link #wanted}, asks the server to say so, and does not wait for it.
     * So it is false at first, as a rule. It becomes false half a lease after the server has said it last, which it says
     * every third of the lease.
     *
     * @return false also if the hold is over, if it is of several keys, or where the server has no module or one that is
     *     too old for it
     */
    public boolean isWanted() {
        Holding now = holding;
        if (released.get() || now.isOver()) {
            return false;
        }
        Wanted wanted = now.wanted;
        if (wanted == null) {
            Room.take();
            wanted = Calls.call(() -> {
                synchronized (holding.lock) {
                    return now.session.hints.of(now);
                }
            });
        }
        return wanted.isNow();
    }

    /**
     * Completes when {@link #isWanted} is true, at once if it is, with true. With false when the hold is over: lost, or
     * released by the last that {@link #again} gave. What depends on it may block, as that of {@link #lost}.
     *
     * @return a future of its own for each call; it never fails, and to cancel it does nothing else
     */
    public CompletableFuture<Boolean> wanted() {
        Room.take();
        return Calls.call(() -> {
            synchronized (holding.lock) {
                boolean over = isReleased() || holding.lost() != null;
                return over ? CompletableFuture.completedFuture(false) : holding.session.hints.of(holding).later();
            }
        });
    }

    /**
     * Sets the lease to so long from now, shorter too. A hold that the server renews is renewed to
     * that from now on. When this returns the server has done it: a thread that is interrupted
     * waits for the answer too, which comes within the time of the locks or is an error.
     *
     * @param lease at least 1 ms
     * @throws LostException if it was lost, and so if the server does not know it any more
     * @throws ConnectionException if there is no connection within the time
     * @throws RefusedException if the server refuses
     * @throws IllegalStateException if it was released
     */
    public void renew(Duration lease) {
        Room.take();
        var renewed = Calls.call(() -> renewing(lease));
        try {
            Wait.join(renewed, true);
        } catch (CompletionException error) {
            throw Thrown.unwrapped(error);
        }
    }

    /** As another acquisition by the same owner does, if the lease would end before this one. */
    void lengthen(long lease) {
        boolean longer = Calls.call(() -> {
            synchronized (holding.lock) {
                return lease > (holding.request.watchdog ? holding.lease() : holding.left());
            }
        });
        if (longer) {
            renew(Duration.ofMillis(lease));
        }
    }

    /**
     * {@link #renew}, without blocking.
     *
     * @param lease at least 1 ms
     * @return fails as {@link #renew} does
     */
    public CompletableFuture<Void> renewAsync(Duration lease) {
        Room.take();
        return Calls.call(() -> handedOver(renewing(lease)));
    }

    private CompletableFuture<Void> renewing(Duration lease) {
        long millis = Millis.of(lease, "lease");
        synchronized (holding.lock) {
            if (released.get() && holding.lost() == null) {
                return CompletableFuture.failedFuture(new IllegalStateException("the hold is released"));
            }
            return holding.session.holds.renew(holding, millis);
        }
    }

    /**
     * One more hold of the same lock, by the same owner, with the same token: for a part of the
     * work that takes the lock by itself. The lock is released when the last of them is.
     *
     * @return the hold, to be released too
     * @throws LostException if it was lost
     * @throws IllegalStateException if it was released
     */
    public Hold again() {
        Room.take();
        return Calls.call(this::oneMore);
    }

    private Hold oneMore() {
        synchronized (holding.lock) {
            if (holding.lost() != null) {
                throw holding.loss();
            }
            if (isReleased()) {
                throw new IllegalStateException("the hold is released");
            }
            holding.holds++;
            return new Hold(holding, asks);
        }
    }

    /**
     * {@link #giveWay(Duration)}, for as long as it takes.
     *
     * @return as there
     * @throws InterruptedException as there
     */
    public boolean giveWay() throws InterruptedException {
        return giveWay(null);
    }

    /**
     * {@link #giveWay(Duration, Duration)}, if it was granted 20 ms ago or more.
     *
     * @param wait as there
     * @return as there
     * @throws InterruptedException as there
     */
    public boolean giveWay(Duration wait) throws InterruptedException {
        return giveWay(wait, Duration.ofMillis(20));
    }

    /**
     * For a long job, between two pieces of its work: if somebody waits ({@link #isWanted}), releases the lock and acquires
     * it again behind them. Then the same hold holds again, with a new {@link #token} and a whole lease, and
     * {@link Request#max} counted anew; its {@link #lost} goes on. What the lock protects may have changed meanwhile.
     *
     * <p>If nobody waits it does nothing, at once. If it fails after it has begun the hold is over: lost, {@code released} if
     * it was not lost before; to release it does nothing more. In between it is over for others too, and if another thread
     * releases it then, that ends the wait.
     *
     * @param wait for at most so long to have it again; null: for as long as it takes
     * @param least it does nothing either if it was granted less than that ago; zero: however young it is
     * @return whether it has given way, and holds again. False also for the time of {@link #atLeast}, and where a hold is
     *     never wanted, as without the module
     * @throws LostException if it was lost or released, before or meanwhile
     * @throws NotAcquiredException if others had it for the whole wait
     * @throws DeadlockException if the wait would never have ended
     * @throws RefusedException if the server refuses, the release too
     * @throws ConnectionException if there is no connection within the time
     * @throws IllegalStateException of several keys, of what is held more than once ({@link #again}), and of what a thread
     *     both reads and writes: nothing was done
     * @throws InterruptedException if the thread was interrupted; if that was before the call, nothing was done
     */
    public boolean giveWay(Duration wait, Duration least) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        Room.take();
        Way begun = Calls.call(() -> Way.of(this, asks, wait, least));
        return begun != null && asks.await(begun);
    }

    /**
     * {@link #giveWay(Duration, Duration)}, without blocking. Whatever completes the future otherwise ends the wait on the
     * server too, and the hold is over.
     *
     * @param wait for at most so long to have it again; null: for as long as it takes
     * @param least it does nothing if it was granted less than that ago
     * @return as there; it fails as that does
     */
    public CompletableFuture<Boolean> giveWayAsync(Duration wait, Duration least) {
        Room.take();
        return Calls.call(() -> {
            try {
                Way begun = Way.of(this, asks, wait, least);
                return begun == null ? CompletableFuture.completedFuture(false) : asks.future(begun);
            } catch (RlockException | IllegalStateException error) {
                return CompletableFuture.failedFuture(error);
            }
        });
    }

    /**
     * Releases the lock. When the program has called it the hold is over, also if the connection
     * breaks meanwhile: the session sees to the server. A second release does nothing.
     *
     * <p>It waits for the server's answer; a thread that is interrupted does not.
     *
     * @throws LostException if the hold was lost before: the program was not alone for all that time
     * @throws RefusedException if the server refuses; the session goes on asking it to release
     */
    public void release() {
        Room.take();
        end();
    }

    /** For a call that has made sure of its room. */
    void end() {
        Wait.unlessInterrupted(Calls.call(this::releasing));
    }

    /** {@link #release}. */
    @Override
    public void close() {
        release();
    }

    /**
     * {@link #release}, without blocking.
     *
     * @return completes when the server has released the lock, or will by itself; fails as
     *     {@link #release} does
     */
    public CompletableFuture<Void> releaseAsync() {
        Room.take();
        return Calls.call(() -> handedOver(releasing()));
    }

    private CompletableFuture<Void> releasing() {
        synchronized (holding.lock) {
            if (!released.compareAndSet(false, true)) {
                return CompletableFuture.completedFuture(null);
            } else if (way != null) {
                way.giveUp();
                return CompletableFuture.completedFuture(null);
            }
            // Once lost each of them says so.
            boolean isLast = --holding.holds == 0 || holding.lost() != null;
            return isLast ? holding.session.holds.release(holding) : CompletableFuture.completedFuture(null);
        }
    }

    /** By all, or to be asked for again. */
    boolean isReleased() {
        return released.get() || holding.released;
    }

    /** It is over, and its scope need not know. */
    void gaveWayInVain(String reason) {
        released.set(true);
        holding.gaveWayInVain(reason);
    }

    /** A lock in the form of java.util.concurrent is locked once more, or once less. */
    void nest(int more) {
        Calls.run(() -> {
            synchronized (holding.lock) {
                holding.holds += more;
            }
        });
    }

    /**
     * Has the lock stay held for so long from now, however the hold ends here: a release before
     * that, and {@link Locks#close}, leaves it to the rest of that time. So nobody does the same
     * work again too soon. Only without {@link Request#watchdog}.
     *
     * @param least from now, in place of what was said before; zero or less: for no time
     * @throws IllegalStateException if the server renews it
     */
    public void atLeast(Duration least) {
        if (holding.request.watchdog) {
            throw new IllegalStateException("what the server renews cannot be left to its lease");
        }
        boolean none = least.isNegative() || least.isZero();
        Long until = none ? null : Millis.after(System.nanoTime(), Millis.of(least, "the least time"));
        Calls.run(() -> {
            synchronized (holding.lock) {
                holding.least = until;
            }
        });
    }

    /** What depends on it is not run by the thread that reads the connection. */
    private static CompletableFuture<Void> handedOver(CompletableFuture<Void> future) {
        return future.isDone() ? future : future.whenCompleteAsync((nothing, error) -> {}, CallbackExecutor.POOL);
    }
}

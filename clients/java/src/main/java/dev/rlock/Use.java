package dev.rlock;

import java.lang.ref.Reference;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;

/**
 * One use of a {@link Sticky} lock: {@code try (Use use = sticky.use()) { ... }}. It is over when it is closed, and then the next
 * one begins.
 */
public final class Use implements AutoCloseable {
    private final Stay stay;
    final Turn turn = new Turn(this);
    /** What it uses. */
    Turn.Lease lease;
    /** 0: the program has not read it. */
    private volatile long token;

    Use(Stay stay) {
        this.stay = stay;
    }

    /**
     * The lock.
     *
     * @return its key
     */
    public String key() {
        return stay.key;
    }

    /**
     * The owner, as {@code RLOCK.INFO} names it: that of the acquisition, which one use or many have had.
     *
     * @return {@code host:pid:uuid}
     */
    public String owner() {
        return lease.holding.target.owner();
    }

    /**
     * A fencing token of this use, greater than those of all uses and holds of the lock before it: storage refuses a smaller
     * one than it has seen. The first use that asks for one since the lock was acquired has it at once, each other one by a
     * round trip. A thread that is interrupted waits for that too, which comes within the time of the locks or is an error.
     *
     * @return the same again for the same use
     * @throws LostException if the lock is lost, or the use is over
     * @throws RefusedException if the server refuses it; the lock goes back at the end of the use then
     * @throws ConnectionException if it does not come in time; so too
     */
    public long token() {
        if (token == 0) {
            Room.take();
            try {
                token = Wait.join(Calls.call(() -> stay.token(turn)), true);
            } catch (CompletionException error) {
                throw Thrown.unwrapped(error);
            } finally {
                Reference.reachabilityFence(this);
            }
        }
        return token;
    }

    /**
     * Whether the lock was lost in this use. Once lost it is lost for good.
     *
     * @return true if it was
     */
    public boolean isLost() {
        return lossReason() != null;
    }

    private String lossReason() {
        if (turn.over) {
            return turn.lost;
        }
        Holding holding = lease.holding;
        if (!holding.isOver()) {
            return holding.lost;
        }
        Room.take();
        return Calls.call(holding::lost);
    }

    /**
     * Completes, never with an error, when the lock is lost in this use; never if that ends first. What depends on it may
     * block, as that of {@link Hold#lost}.
     *
     * @return with what {@link #close} would throw
     */
    public CompletionStage<LostException> lost() {
        Room.take();
        var told = new CompletableFuture<LostException>();
        var ends = Calls.call(lease.holding::lostLater);
        var mine = turn; // of a use that nobody else refers to nothing else does
        ends.thenAccept(loss -> {
            if (!mine.over || mine.lost != null) {
                told.complete(loss);
            }
        });
        return told.minimalCompletionStage();
    }

    /**
     * The use is over. A second close does nothing.
     *
     * @throws LostException if the lock was lost before
     */
    @Override
    public void close() {
        try {
            long nanos = System.nanoTime();
            long millis = System.currentTimeMillis();
            if (!lease.isProved(nanos, millis) && stay.on.isOf(turn) && lossReason() == null) {
                // Nothing was heard for too long, as in a process that was stopped: it has to be asked.
                Room.take();
                Wait.join(Calls.call(stay::prove), true);
                nanos = System.nanoTime();
                millis = System.currentTimeMillis();
            }
            end(nanos, millis);
        } finally {
            stay.on.giveBack(turn); // if something was thrown at any line before
            Reference.reachabilityFence(this);
        }
    }

    private void end(long nanos, long millis) {
        boolean sure = stay.on.lease == lease && !lease.isPast(nanos, millis) && lease.isProved(nanos, millis);
        String why = sure ? null : lossReason();
        if (stay.on.isOf(turn)) {
            stay.on.used = nanos;
            lease.uses++;
        }
        turn.lost = why;
        turn.over = true;
        if (!stay.on.giveBack(turn)) {
            return; // it was over
        }
        if (stay.on.waits || stay.on.lease != lease || lease.isPast(nanos, millis)) {
            Room.take();
            Calls.run(stay::look);
        }
        if (why != null) {
            throw new LostException(stay.key, why);
        }
    }
}

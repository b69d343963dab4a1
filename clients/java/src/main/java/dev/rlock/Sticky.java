package dev.rlock;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/**
 * A lock that stays with this process between its uses: see {@link Locks#sticky(String)}.
 *
 * <pre>{@code
 * try (Use use = sticky.use()) {
 *     // alone here
 * }
 * }</pre>
 */
public final class Sticky implements AutoCloseable {
    private final Stay stay;

    Sticky(Stay stay) {
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
     * Begins a use. Uses of a process come one after the other, in their order, whichever threads they are of. While the lock is
     * here and nobody else wants it this needs no word to the server.
     *
     * @return the use, to be closed: use it in a try-with-resources statement. The next use by this thread comes after that
     * @throws NotAcquiredException if its time was over before it could begin
     * @throws RefusedException if the server refuses
     * @throws ConnectionException if there is no connection within the time, or this or the locks are closed
     * @throws LostException if the lock was lost before it could be given to a use
     * @throws IllegalStateException if this thread has begun the use that is under way, for which this one would wait
     * @throws InterruptedException if the thread was interrupted; the wait is over in the server too
     */
    public Use use() throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        var use = new Use(stay);
        try {
            Turn.Lease here = stay.on.begin(use.turn);
            use.lease = here != null ? here : inLine(use);
            return use;
        } catch (Throwable error) {
            stay.on.giveBack(use.turn);
            throw error;
        }
    }

    private Turn.Lease inLine(Use use) throws InterruptedException {
        if (stay.on.isMine()) {
            throw new IllegalStateException("a use of " + stay.key + " within a use of it would wait for itself");
        }
        Room.take();
        CompletableFuture<Turn.Lease> begun = Calls.call(() -> stay.begin(use.turn));
        try {
            return Wait.get(begun, false);
        } catch (ExecutionException error) {
            throw Thrown.unwrapped(error.getCause());
        } catch (Throwable error) {
            Calls.run(() -> stay.giveUp(use.turn));
            throw error;
        }
    }

    /**
     * Releases it, and waits for the server's answer; if a use is under way it is released at the end of that. No use begins any
     * more: further ones, and those that wait, fail with {@link ConnectionException}. A second close does nothing.
     */
    @Override
    public void close() {
        Room.take();
        Wait.unlessInterrupted(Calls.call(stay::close));
    }

    /** Uses that wait. */
    int waiting() {
        return stay.line.size();
    }
}

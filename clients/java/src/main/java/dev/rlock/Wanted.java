package dev.rlock;

import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * Whether somebody waits whom the release of a hold would serve: what the server has said of it, and who waits for
 * that. What changes is guarded by the lock of its session.
 */
final class Wanted {
    /** Which was asked to say it; null: none, or one that does not take the word. */
    Wire askedBy;
    /** What the program waits for. To take one out takes no lock: whoever completes it otherwise does. */
    private final Queue<CompletableFuture<Boolean>> waits = new ConcurrentLinkedQueue<>();
    /** Until when the last word of it counts: nobody says that it is over. */
    private volatile long until = System.nanoTime();
    private volatile boolean said;

    boolean isNow() {
        return System.nanoTime() - until < 0;
    }

    /** Until the hold is over: then by false. */
    CompletableFuture<Boolean> later() {
        if (isNow()) {
            return CompletableFuture.completedFuture(true);
        }
        var wait = new CompletableFuture<Boolean>();
        waits.add(wait);
        wait.whenComplete((wanted, error) -> waits.remove(wait));
        return wait;
    }

    /** Whether the server has ever said it. */
    boolean wasSaid() {
        return said;
    }

    /** The server says it, as it does every third of the lease. */
    void said(long lease) {
        said = true;
        until = System.nanoTime() + Math.min(lease, 1L << 42) * Millis.NANOS / 2;
        complete(true);
    }

    void over() {
        until = System.nanoTime();
        complete(false);
    }

    private void complete(boolean wanted) {
        for (CompletableFuture<Boolean> wait; (wait = waits.poll()) != null; ) {
            wait.completeAsync(() -> wanted, CallbackExecutor.POOL); // not by the thread that reads the connection
        }
    }
}

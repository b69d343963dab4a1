package dev.rlock;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import java.util.function.Function;

/** The end of all sessions of some {@link Locks}, in which the server has the last word. */
record Closing(Router router, ScheduledExecutorService timer, long timeout, Runnable last) {
    /** In a thread of its own: whatever becomes of the one that closes, it is done to the end. */
    void run() {
        var left = new CompletableFuture<Void>();
        Runnable leaving = () -> {
            try {
                closeSessions();
            } finally {
                settle(Session::disconnect, timeout); // so that nobody else closes it too
                last.run();
                left.complete(null);
            }
        };
        try {
            CallbackExecutor.daemon("rlock-close", leaving).start();
        } catch (OutOfMemoryError error) { // there is no thread
            leaving.run();
        }
        Wait.unlessInterrupted(left);
    }

    /** All sessions are closed, and their pending commands answered; in a cluster these may go to another one meanwhile. */
    private void closeSessions() {
        long end = Millis.after(System.nanoTime(), timeout);
        do {
            settle(Session::close, Math.max(1, Millis.until(end)));
            var moved = CompletableFuture.runAsync(() -> {}, timer);
            settle(session -> moved, Math.max(1, Millis.until(end)));
        } while (Millis.until(end) > 0
                && !Thread.currentThread().isInterrupted()
                && router.sessions().stream().anyMatch(Session::hasUnsettled));
    }

    /** With all sessions, but for as long as that may take. */
    private void settle(Function<Session, CompletableFuture<Void>> end, long millis) {
        var done = CompletableFuture.allOf(
                router.sessions().stream().map(end).toArray(CompletableFuture[]::new));
        try {
            // The server ends by itself what it did not answer: with the connection or the lease.
            Wait.atMost(done, millis);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}

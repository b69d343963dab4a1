package dev.rlock;

import java.util.concurrent.CompletableFuture;

/** Who completes it cancels the request, and has the room for that. */
final class HoldFuture extends CompletableFuture<Hold> {
    @Override
    public boolean complete(Hold hold) {
        Room.take();
        return super.complete(hold);
    }

    @Override
    public boolean completeExceptionally(Throwable error) {
        Room.take();
        return super.completeExceptionally(error);
    }

    @Override
    public boolean cancel(boolean interrupt) {
        Room.take();
        return super.cancel(interrupt);
    }
}

package dev.rlock;

import java.util.concurrent.CompletableFuture;

/** Who completes it cancels the request, and has the room for that. */
final class AskedFuture<T> extends CompletableFuture<T> {
    @Override
    public boolean complete(T value) {
        Room.take();
        return super.complete(value);
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

package dev.rlock;

import java.util.concurrent.CompletableFuture;

/** Who completes it gives up what was asked for, before that goes on, and has the room for that. */
final class AskedFuture<T> extends CompletableFuture<T> {
    private final Runnable giveUp;

    AskedFuture(Runnable giveUp) {
        this.giveUp = giveUp;
    }

    /** What was asked for; false: it was completed before. */
    boolean answer(T value) {
        return super.complete(value);
    }

    void fail(Throwable error) {
        super.completeExceptionally(error);
    }

    @Override
    public boolean complete(T value) {
        Room.take();
        return given(super.complete(value));
    }

    @Override
    public boolean completeExceptionally(Throwable error) {
        Room.take();
        return given(super.completeExceptionally(error));
    }

    @Override
    public boolean cancel(boolean interrupt) {
        Room.take();
        boolean before = isDone();
        return given(super.cancel(interrupt) && !before) || isCancelled();
    }

    private boolean given(boolean completed) {
        if (completed) {
            giveUp.run();
        }
        return completed;
    }
}

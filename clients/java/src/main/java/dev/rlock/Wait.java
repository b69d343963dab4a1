package dev.rlock;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * Waits for a future, and runs nothing meanwhile. {@link CompletableFuture#get} and {@code join}
 * do, in a worker of the common pool: other tasks of the program, on the stack of the one that
 * waits and as its thread. One of them would wait for what lies beneath it, or have its locks.
 */
final class Wait implements ForkJoinPool.ManagedBlocker {
    private final CompletableFuture<?> future;
    /** Within ms; negative: for as long as it takes. */
    private final long most;
    /** It comes by itself, whoever else works. */
    private final boolean soon;
    private final CountDownLatch done = new CountDownLatch(1);

    private Wait(CompletableFuture<?> future, long most, boolean soon) {
        this.future = future;
        this.most = most;
        this.soon = soon;
        future.whenComplete((value, error) -> done.countDown());
    }

    /** @param soon the server's answer is all that is waited for */
    static <T> T get(CompletableFuture<T> future, boolean soon) throws InterruptedException, ExecutionException {
        if (!future.isDone()) {
            new Wait(future, -1, soon).stand();
        }
        return future.get();
    }

    /** The same, but that an interrupt does not end it. */
    static <T> T join(CompletableFuture<T> future, boolean soon) {
        boolean interrupted = false;
        Wait wait = future.isDone() ? null : new Wait(future, -1, soon);
        try {
            while (!future.isDone()) {
                try {
                    wait.stand();
                } catch (InterruptedException error) {
                    interrupted = true;
                }
            }
            return future.join();
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** A thread that is interrupted does not wait. */
    static void unlessInterrupted(CompletableFuture<Void> future) {
        try {
            get(future, true);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException error) {
            throw Thrown.unwrapped(error.getCause());
        }
    }

    /** For at most so many ms, done or not. */
    static void atMost(CompletableFuture<?> future, long millis) throws InterruptedException {
        if (!future.isDone()) {
            new Wait(future, millis, true).stand();
        }
    }

    /**
     * A pool of the program's has another worker meanwhile. One that may have none refuses to wait
     * for others, as it is configured to.
     */
    private void stand() throws InterruptedException {
        try {
            ForkJoinPool.managedBlock(this);
        } catch (RejectedExecutionException error) {
            if (!soon) {
                throw error;
            }
            block();
        }
    }

    @Override
    public boolean block() throws InterruptedException {
        if (most < 0) {
            done.await();
            return true;
        }
        return done.await(most, TimeUnit.MILLISECONDS) || true;
    }

    @Override
    public boolean isReleasable() {
        return future.isDone();
    }
}

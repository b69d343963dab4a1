package interop.harness;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Function;

/** A contender on a thread of its own. */
public final class Actor implements AutoCloseable {
    private static final long BOUND_S = 60;

    private final ExecutorService executor;
    private final Thread thread;
    private final Contender contender;

    /** `make` is given the id of the thread. */
    public Actor(Function<Long, Contender> make) {
        executor = Executors.newSingleThreadExecutor(task -> {
            Thread made = new Thread(task, "actor");
            made.setDaemon(true);
            return made;
        });
        thread = await(executor.submit(Thread::currentThread));
        contender = make.apply(thread.getId());
    }

    /** A thread alone, for what it is told by run(). */
    public Actor() {
        this(thread -> null);
    }

    public long threadId() {
        return thread.getId();
    }

    /** Does it, and waits until it is done. */
    public <T> T ask(Function<Contender, T> question) {
        return await(begin(question));
    }

    public void tell(Consumer<Contender> order) {
        ask(contender -> {
            order.accept(contender);
            return null;
        });
    }

    /** Does it on this thread. */
    public void run(Runnable task) {
        tell(contender -> task.run());
    }

    /** Does it meanwhile. */
    public <T> Future<T> begin(Function<Contender, T> task) {
        return executor.submit(() -> task.apply(contender));
    }

    /** Begins to wait for the lock; the answer is when it had it. */
    public Future<Long> beginLock(long leaseMs) {
        Future<Long> entered = begin(contender -> {
            contender.lock(leaseMs);
            return System.nanoTime();
        });
        Wait.until("it waits, or is in", () -> entered.isDone() || contender.waits(thread));
        return entered;
    }

    public boolean tryLock(long leaseMs) {
        return ask(contender -> contender.tryLock(leaseMs));
    }

    public void unlock() {
        tell(Contender::unlock);
    }

    public static <T> T await(Future<T> future) {
        return await(future, BOUND_S * 1000);
    }

    public static <T> T await(Future<T> future, long boundMs) {
        try {
            return future.get(boundMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new AssertionError("it still waits after " + boundMs / 1000 + " s", e);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause
                    : new IllegalStateException(e.getCause());
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        if (contender != null) {
            contender.close();
        }
        executor.shutdownNow();
    }
}

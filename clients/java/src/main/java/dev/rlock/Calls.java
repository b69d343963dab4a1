package dev.rlock;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * What a call of the program does with a session: in the thread that calls, unless that is a virtual
 * one. Such a thread goes on, when it has stood for a moment, only once the program leaves it a
 * carrier; with the session's lock, or queued for one of the timer's, it would keep who reads the
 * connection for as long. So a thread of the system does it.
 */
final class Calls {
    private static final MethodHandle IS_VIRTUAL = isVirtual();
    /** To put something there takes no lock. */
    private static final Queue<Runnable> TASKS = new ConcurrentLinkedQueue<>();
    private static volatile Thread worker;

    private Calls() {}

    private static MethodHandle isVirtual() {
        try {
            return MethodHandles.lookup().findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException error) {
            return null; // before 21 there are none
        }
    }

    static boolean areVirtual() {
        try {
            return IS_VIRTUAL != null && (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    /** @param work waits for nothing but locks */
    static <T> T call(Supplier<T> work) {
        if (!areVirtual()) {
            return work.get();
        }
        start();
        var done = new CompletableFuture<T>();
        TASKS.add(() -> {
            try {
                done.complete(work.get());
            } catch (Throwable error) {
                done.completeExceptionally(error);
            }
        });
        LockSupport.unpark(worker);
        try {
            return Wait.join(done, true);
        } catch (CompletionException error) {
            if (error.getCause() instanceof Error wrong) {
                throw wrong;
            }
            throw Thrown.unwrapped(error);
        }
    }

    static void run(Runnable work) {
        call(() -> {
            work.run();
            return null;
        });
    }

    private static void start() {
        if (worker == null) {
            synchronized (TASKS) {
                if (worker == null) {
                    var thread = CallbackExecutor.daemon("rlock-calls", Calls::work);
                    thread.start();
                    worker = thread;
                }
            }
        }
    }

    private static void work() {
        for (;;) {
            try {
                for (Runnable task; (task = TASKS.poll()) != null; ) {
                    task.run();
                }
                LockSupport.park(TASKS);
                Thread.interrupted();
            } catch (OutOfMemoryError error) {
                // The next one may have what this one had not.
            }
        }
    }
}

package dev.rlock;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;

/**
 * What completes the program's futures, and so runs its callbacks, which may block: none waits
 * until another has ended, for there are as many threads as are at work.
 */
final class Hands implements Executor {
    private static final long IDLE = 5_000;
    static final Executor POOL = make();

    private final Queue<Runnable> tasks = new ArrayDeque<>();
    private int idle;
    private boolean starting;

    private Hands() {}

    private static Executor make() {
        try {
            // Before 24 a virtual thread that waits inside synchronized keeps others from running.
            if (Runtime.version().feature() >= 24) {
                return (Executor) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
            }
        } catch (ReflectiveOperationException error) {
            // Then by those of the system.
        }
        return new Hands();
    }

    /** Which takes nothing along of the thread that makes it. */
    static Thread daemon(String name, Runnable run) {
        var thread = new Thread(null, run, name, 0, false);
        thread.setDaemon(true);
        return thread;
    }

    @Override
    public synchronized void execute(Runnable task) {
        tasks.add(task);
        wake();
    }

    /** One more looks what there is to do. One at a time begins: short tasks need but a few. */
    private void wake() {
        if (idle > 0) {
            notify();
        } else if (!starting) {
            starting = true;
            try {
                daemon("rlock-callback", this::work).start();
            } catch (OutOfMemoryError error) { // no more threads are to be had: the next that is done takes it
                starting = false;
            }
        }
    }

    private void work() {
        synchronized (this) {
            starting = false;
        }
        for (Runnable task; (task = next()) != null; ) {
            task.run();
        }
    }

    private synchronized Runnable next() {
        long end = System.nanoTime() + IDLE * Millis.NANOS;
        for (long left = IDLE; tasks.isEmpty(); left = Millis.until(end)) {
            if (left <= 0) {
                return null;
            }
            idle++;
            try {
                wait(left);
            } catch (InterruptedException error) {
                // The program's last callback left that behind.
            } finally {
                idle--;
            }
        }
        Runnable task = tasks.remove();
        if (!tasks.isEmpty()) {
            wake(); // this one may take long
        }
        Thread.interrupted();
        return task;
    }
}

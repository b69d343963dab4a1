package dev.rlock;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Completes the program's futures, and so runs its callbacks, which may block: none waits
 * until another has ended, for there are as many threads as are at work.
 */
final class CallbackExecutor implements Executor {
    private static final long IDLE = 5_000;
    /** Until it is tried again to begin a thread where there was none. */
    private static final long RETRY = 100;

    /** Threads of the system: virtual ones run only where the program's own leave them a carrier. */
    static final CallbackExecutor POOL = new CallbackExecutor();

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition work = lock.newCondition();
    private final Condition wanted = lock.newCondition();
    private final Queue<Runnable> tasks = new ArrayDeque<>();
    /** Threads that have no task, or have just been begun for one. */
    private int idle;
    /** Begins the others, so that it is never one at work who has to. */
    private volatile Thread first;

    private CallbackExecutor() {}

    /** Which takes nothing along of the thread that makes it. */
    static Thread daemon(String name, Runnable run) {
        var thread = new Thread(null, run, name, 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(CallbackExecutor.class.getClassLoader());
        return thread;
    }

    /** Before the first task: where there is no thread at all, the program gets the error. */
    void start() {
        if (first != null) {
            return;
        }
        lock.lock();
        try {
            if (first == null) {
                var thread = daemon("rlock-callbacks", this::begin);
                thread.start();
                first = thread;
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void execute(Runnable task) {
        lock.lock();
        try {
            tasks.add(task);
            wake();
        } finally {
            lock.unlock();
        }
    }

    /** One more looks what there is to do. One at a time begins: short tasks need but a few. */
    private void wake() {
        (idle > 0 ? work : wanted).signal();
    }

    private void begin() {
        lock.lock();
        for (;;) {
            if (tasks.isEmpty() || idle > 0) {
                wanted.awaitUninterruptibly();
            } else if (!begun()) {
                pause();
            }
        }
    }

    private boolean begun() {
        try {
            daemon("rlock-callback", this::work).start();
            idle++;
            return true;
        } catch (Throwable error) { // there are no more threads, or no memory
            return false;
        }
    }

    private void pause() {
        try {
            wanted.await(RETRY, TimeUnit.MILLISECONDS);
        } catch (InterruptedException error) {
            // Then at once.
        }
    }

    private void work() {
        boolean begun = true;
        for (Runnable task; (task = next(begun)) != null; begun = false) {
            task.run();
        }
    }

    /** @param begun it is counted already */
    private Runnable next(boolean begun) {
        lock.lock();
        idle += begun ? 0 : 1;
        try {
            long end = System.nanoTime() + IDLE * Millis.NANOS;
            for (long left = IDLE; tasks.isEmpty(); left = Millis.until(end)) {
                if (left <= 0) {
                    return null;
                }
                await(left);
            }
            Thread.interrupted();
            return tasks.remove();
        } finally {
            idle--;
            if (!tasks.isEmpty()) {
                wake(); // this one may take long
            }
            lock.unlock();
        }
    }

    private void await(long millis) {
        try {
            work.await(millis, TimeUnit.MILLISECONDS);
        } catch (InterruptedException error) {
            // The program's last callback left that behind.
        }
    }
}

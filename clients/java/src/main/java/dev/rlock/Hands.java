package dev.rlock;

import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * What runs the program's callbacks, so that they may block: not a thread of Lettuce's, and not
 * the common pool, which a small machine has one thread of.
 */
final class Hands {
    private static final int MOST = 32;
    static final Executor POOL = pool();

    private Hands() {}

    private static Executor pool() {
        var pool = new ThreadPoolExecutor(MOST, MOST, 5, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), run -> {
            var thread = new Thread(run, "rlock-callback");
            thread.setDaemon(true);
            return thread;
        });
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }
}

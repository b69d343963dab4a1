package dev.rlock;

import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** What is said when something has not come in time. */
final class Late {
    /** So late is a timer only of a process that was itself paused, in ms. */
    private static final long STOOD = 100;
    /** And as long it has then to read what has come meanwhile. */
    static final long READING = 500;

    private Late() {}

    /** Whether this process was, when what was due then comes now. */
    static boolean isPaused(long due) {
        return Millis.until(due) < -STOOD;
    }

    /** @param run does no harm when it is called although it was cancelled */
    static Future<?> after(ScheduledExecutorService timer, Runnable run, long millis) {
        long due = Millis.after(System.nanoTime(), millis);
        return timer.schedule(() -> {
            if (isPaused(due)) {
                timer.schedule(run, READING, TimeUnit.MILLISECONDS);
            } else {
                run.run();
            }
        }, millis, TimeUnit.MILLISECONDS);
    }
}

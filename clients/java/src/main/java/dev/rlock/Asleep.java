package dev.rlock;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * How long the machine was suspended. {@link System#nanoTime} stands meanwhile, and leases at a
 * server do not.
 */
final class Asleep {
    /** A clock that is set by less than that is not looked into, in ns. */
    private static final long DRIFT = 100 * Millis.NANOS;

    private static final Path UPTIME = Path.of("/proc/uptime");
    /** The same of the clock that goes on while the machine is suspended; null: there is none. */
    private static final Long UPTIME_AT_FIRST = uptime();

    private Asleep() {}

    /** To be given to {@link #since}. */
    static long mark() {
        return System.currentTimeMillis() * Millis.NANOS - System.nanoTime();
    }

    /** Since then, in ns. The time of day, which is cheap to ask, says whether it may have been. */
    static long since(long mark) {
        long ahead = mark() - mark;
        if (ahead < DRIFT) {
            return 0;
        }
        Long uptime = UPTIME_AT_FIRST == null ? null : uptime();
        // Somebody may have set the clock; then no more than that was slept.
        return uptime == null ? ahead : Math.min(ahead, Math.max(0, uptime - UPTIME_AT_FIRST));
    }

    private static Long uptime() {
        try {
            String text = Files.readString(UPTIME);
            return (long) (Double.parseDouble(text.substring(0, text.indexOf(' '))) * 1e9) - System.nanoTime();
        } catch (IOException | RuntimeException error) {
            return null;
        }
    }
}

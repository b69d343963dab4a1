package dev.rlock;

import java.time.Duration;

/** Durations as the server takes them. */
final class Millis {
    static final long NANOS = 1_000_000;
    private static final long MOST = (1L << 53) - 1;

    private Millis() {}

    /** In ms, rounded up, 1 to 2^53-1. */
    static long of(Duration duration, String what) {
        if (duration.isNegative() || duration.isZero()) {
            throw new IllegalArgumentException(what + " must be longer than nothing");
        }
        if (duration.getSeconds() >= MOST / 1000) {
            throw new IllegalArgumentException(what + " is too long");
        }
        return duration.plusNanos(NANOS - 1).toMillis();
    }

    /** How many ms until then, rounded up; 0 or less if that was. */
    static long until(long nanos) {
        return Math.floorDiv(nanos - System.nanoTime() + NANOS - 1, NANOS);
    }

    /** That many ms from then; a time that no process sees is as good as none. */
    static long after(long nanos, long millis) {
        return nanos + Math.min(millis, 1L << 42) * NANOS;
    }
}

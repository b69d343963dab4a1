package dev.rlock;

/**
 * A time by two clocks, in ns and in ms: the one stands while the machine is suspended, the other may be set. What neither
 * of them says to be over is not over.
 */
record Moment(long nanos, long millis) {
    static Moment now() {
        return new Moment(System.nanoTime(), System.currentTimeMillis());
    }

    Moment after(long millis) {
        return new Moment(Millis.after(nanos, millis), this.millis + Math.min(millis, 1L << 42));
    }

    boolean isAhead(long nanos, long millis) {
        return nanos - this.nanos < 0 && millis < this.millis;
    }

    boolean isAheadOf(Moment now) {
        return isAhead(now.nanos, now.millis);
    }
}

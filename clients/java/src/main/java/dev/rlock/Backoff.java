package dev.rlock;

/**
 * Whether a sticky lock stays: see "Sticky" in clients/README.md, 10. Where processes alternate, one that stays is called back
 * each time, which costs more than a plain lock.
 */
final class Backoff {
    /** Uses for which it was worth to stay. */
    private static final int ENOUGH = 3;
    private static final int LEAST = 4;
    private static final int MOST = 64;

    /** So many acquisitions do not stay. */
    private int left;
    private int last;

    boolean isOn() {
        return left > 0;
    }

    /** After so many uses; {@code wanted} by somebody else. */
    void wentBack(int uses, boolean wanted) {
        if (left > 0) {
            left--;
        } else if (wanted && uses < ENOUGH) {
            last = Math.min(Math.max(2 * last, LEAST), MOST);
            left = last;
        } else {
            last = 0;
        }
    }
}

package interop.harness;

import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waiting for a condition, with a generous bound. */
public final class Wait {
    private static final long BOUND_MS = 20_000;

    private Wait() {
    }

    public static void until(String what, BooleanSupplier condition) {
        if (!becomes(condition, () -> false)) {
            throw new AssertionError("not within " + BOUND_MS / 1000 + " s: " + what);
        }
    }

    /** Whether it becomes true in time, and before `inVain` does. */
    static boolean becomes(BooleanSupplier condition, BooleanSupplier inVain) {
        long end = System.nanoTime() + BOUND_MS * 1_000_000;
        while (!condition.getAsBoolean()) {
            if (inVain.getAsBoolean() || System.nanoTime() > end) {
                return false;
            }
            LockSupport.parkNanos(1_000_000);
        }
        return true;
    }
}

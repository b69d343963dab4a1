package interop.cases;

import interop.harness.Settings;
import interop.harness.Times;
import java.util.Arrays;

/** What the clients of one side did in a contest. */
final class Side {
    /** To see that it never stands still the contest is cut into parts, of 2 s at least. */
    private static final int PARTS =
            (int) Math.max(1, Math.min(5, Settings.contestMillis() / 2_000));

    private final String name;
    private final long[] entries = new long[PARTS];
    private final Times waits = new Times();
    private long writes;
    private long fewestByAClient = Long.MAX_VALUE;

    Side(String name) {
        this.name = name;
    }

    /** `when`: 0 at the beginning of the contest, 1 at its end. */
    synchronized void entered(double when, boolean wrote, long waited) {
        int part = (int) (when * PARTS);
        if (part < PARTS) {
            entries[part]++;
        }
        writes += wrote ? 1 : 0;
        waits.add(waited);
    }

    /** A client came to its end, after so many acquisitions. */
    synchronized void left(long entries) {
        fewestByAClient = Math.min(fewestByAClient, entries);
    }

    synchronized long fewestByAClient() {
        return fewestByAClient;
    }

    String name() {
        return name;
    }

    /** Every acquisition that counted up, also those after the end. */
    synchronized long writes() {
        return writes;
    }

    synchronized long entries() {
        return Arrays.stream(entries).sum();
    }

    synchronized long fewestInAPart() {
        return Arrays.stream(entries).min().orElse(0);
    }

    String longestWait() {
        return Times.shown(waits.longest());
    }
}

package interop.harness;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;

/** Durations, and how they are shown. */
public final class Times {
    private final List<Long> nanos = new ArrayList<>();

    public synchronized void add(long duration) {
        nanos.add(duration);
    }

    /** `median / longest`. */
    public synchronized String shown() {
        List<Long> sorted = new ArrayList<>(nanos);
        Collections.sort(sorted);
        return shown(sorted.get(sorted.size() / 2)) + " / " + shown(sorted.get(sorted.size() - 1));
    }

    public synchronized long longest() {
        return nanos.isEmpty() ? 0 : Collections.max(nanos);
    }

    public static String shown(long nanos) {
        double ms = nanos / 1e6;
        return String.format(Locale.ROOT, ms < 10 ? "%.1f ms" : "%.0f ms", ms);
    }
}

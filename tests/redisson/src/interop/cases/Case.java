package interop.cases;

import interop.harness.Report;
import interop.harness.Site;
import java.util.function.Function;

/** Something that is easy to get wrong, and concerns some kinds only. */
public abstract class Case {
    static final long LEASE_MS = 60_000;
    static final long BOUND_MS = 5_000;

    /** What it is about, in a word or two. */
    public abstract String name();

    public abstract void run(Report report);

    /** A sentence that holds on servers of its own; what `test` returns is shown. */
    final void holds(Report report, String sentence, Function<Site, String> test) {
        holds(report, sentence, Site.open(), test);
    }

    final void holds(Report report, String sentence, Site opened, Function<Site, String> test) {
        report.cell("cases that are easy to get wrong", sentence, "result", () -> {
            try (Site site = opened) {
                return test.apply(site);
            }
        });
    }
}

package interop.cases;

import interop.harness.Check;
import interop.harness.Report;
import interop.harness.Site;
import interop.kinds.Kind;
import interop.kinds.Kinds;

/** Twenty clients contend for a lock of each kind: nobody is let in beside another. */
public final class Contention extends Case {
    private static final String TABLE = "10 native and 10 Redisson clients count up one number";
    private static final int NATIVES = 10;
    private static final int APPLICATIONS = 5;
    private static final int THREADS_OF_EACH = 2;

    @Override
    public String name() {
        return "contention";
    }

    @Override
    public void run(Report report) {
        for (Kind kind : Kinds.ALL) {
            // In the contest all read and write; once is enough.
            if (!kind.isShared() || kind == Kinds.WRITE_THEN_READ) {
                report.cell(TABLE, kind.name(), "count", () -> contest(report, kind));
            }
        }
    }

    private static String contest(Report report, Kind kind) {
        try (Site site = Site.open()) {
            Contest contest = Contest.run(site, kind, NATIVES, APPLICATIONS, THREADS_OF_EACH);
            for (Side side : new Side[] {contest.rlock, contest.redisson}) {
                report.put(TABLE, kind.name(), side.name(), Long.toString(side.entries()));
                report.put(TABLE, kind.name(), side.name() + " waited, max", side.longestWait());
            }
            for (Side side : new Side[] {contest.rlock, contest.redisson}) {
                Check.that(side.entries() > 0, side.name() + " had a part in it");
            }
            return "exact";
        }
    }
}

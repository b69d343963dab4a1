package interop.cases;

import interop.harness.Check;
import interop.harness.Report;
import interop.harness.Site;
import interop.kinds.Kind;
import interop.kinds.Kinds;
import java.util.List;

/** Where both sides always wait, neither keeps the other out. */
public final class Crowd extends Case {
    private static final String TABLE = "6 native and 6 Redisson clients in a crowd";

    @Override
    public String name() {
        return "crowd";
    }

    @Override
    public void run(Report report) {
        for (Kind kind : List.of(Kinds.LOCK, Kinds.FAIR, Kinds.WRITE_THEN_WRITE)) {
            report.cell(TABLE, kind.name(), "both go on", () -> crowd(report, kind));
        }
    }

    private static String crowd(Report report, Kind kind) {
        try (Site site = Site.open()) {
            Contest contest = Contest.run(site, kind, 6, 3, 2);
            Side[] sides = {contest.rlock, contest.redisson};
            long all = contest.rlock.entries() + contest.redisson.entries();
            for (Side side : sides) {
                report.put(TABLE, kind.name(), side.name(),
                        side.entries() + " (" + 100 * side.entries() / Math.max(1, all) + " %)");
                report.put(TABLE, kind.name(), "fewest by a client of " + side.name(),
                        Long.toString(side.fewestByAClient()));
                report.put(TABLE, kind.name(), side.name() + " waited, max", side.longestWait());
            }
            for (Side side : sides) {
                Check.that(side.fewestInAPart() > 0,
                        side.name() + " came in in each part of the time");
                Check.that(side.fewestByAClient() > 1, "so did each of its clients, more than once");
            }
            return "ok";
        }
    }
}

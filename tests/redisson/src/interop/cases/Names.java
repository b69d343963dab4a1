package interop.cases;

import interop.cells.Direction;
import interop.cells.Pair;
import interop.cells.Woken;
import interop.harness.Report;
import interop.harness.Site;
import interop.kinds.Kind;
import interop.kinds.Kinds;
import java.util.List;

/** Channels and lease keys are named after the lock, whatever its name looks like. */
public final class Names extends Case {
    private static final List<String> NAMES = List.of("a:b", "two words", "{tag}:k", "k{tag}",
            "open{", "closed}", "{}", "{}k", "a{b}{c}", "schl\u00fcssel \u9375", "%s", "k\r\n");

    @Override
    public String name() {
        return "names";
    }

    @Override
    public void run(Report report) {
        for (Kind kind : List.of(Kinds.LOCK, Kinds.READ_THEN_WRITE)) {
            holds(report, "odd names: " + kind.name(), site -> {
                NAMES.forEach(name -> bothWays(site, kind, name));
                return NAMES.size() + " names";
            });
        }
    }

    private static void bothWays(Site site, Kind kind, String name) {
        for (Direction direction : Direction.values()) {
            try (Pair pair = new Pair(site, kind, direction, name)) {
                Woken.round(pair);
            } catch (RuntimeException | AssertionError e) {
                throw new AssertionError(name + ", " + direction, e);
            }
        }
    }
}

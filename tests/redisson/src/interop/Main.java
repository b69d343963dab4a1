package interop;

import interop.cases.Case;
import interop.cases.Cluster;
import interop.cases.Contention;
import interop.cases.Crowd;
import interop.cases.DeadReader;
import interop.cases.FairQueue;
import interop.cases.Fencing;
import interop.cases.HeldInPart;
import interop.cases.HiddenHold;
import interop.cases.HolderDies;
import interop.cases.Names;
import interop.cases.OneOwner;
import interop.cases.OtherTypes;
import interop.cases.WriterLeaves;
import interop.cells.Column;
import interop.cells.Ends;
import interop.cells.Forced;
import interop.cells.Matrix;
import interop.cells.Refused;
import interop.cells.SameView;
import interop.cells.Watched;
import interop.cells.Woken;
import interop.harness.Report;
import interop.kinds.Kinds;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** Tests the module and Redisson against each other, and prints what holds. */
public final class Main {
    private static final String TABLE = "kinds of locks by direction";

    private final Report report = new Report();
    private final Map<String, Runnable> parts = new LinkedHashMap<>();

    private Main() {
        column(new Refused());
        column(new SameView());
        column(new Woken());
        column(new Ends());
        column(new Forced(true));
        column(new Forced(false));
        column(new Watched());
        part(new HeldInPart());
        part(new WriterLeaves());
        part(new DeadReader());
        part(new HolderDies());
        part(new OtherTypes());
        part(new OneOwner());
        part(new HiddenHold());
        part(new Names());
        part(new FairQueue());
        part(new Fencing());
        part(new Cluster());
        part(new Crowd());
        part(new Contention());
    }

    private void column(Column column) {
        parts.put(column.title(), () -> Matrix.fill(report, TABLE, Kinds.ALL, column));
    }

    private void part(Case some) {
        parts.put(some.name(), () -> some.run(report));
    }

    /** Runs all parts, or those whose names have one of the words in them. */
    public static void main(String[] words) {
        Main main = new Main();
        main.parts.forEach((name, part) -> {
            if (words.length == 0 || Arrays.stream(words).anyMatch(name::contains)) {
                main.run(name, part);
            }
        });
        // Threads that still wait for a lock must not keep it running.
        System.exit(main.report.print() ? 0 : 1);
    }

    private void run(String name, Runnable part) {
        long begun = System.nanoTime();
        try {
            part.run();
        } catch (RuntimeException | AssertionError e) {
            report.broken(name, e);
        }
        System.out.printf("%s (%d s)%n", name, (System.nanoTime() - begun) / 1_000_000_000);
    }
}

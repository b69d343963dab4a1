package interop.cells;

import interop.harness.Report;
import interop.harness.Site;
import interop.kinds.Kind;
import java.util.ArrayList;
import java.util.List;

/** Tests columns for kinds of locks, in both directions. */
public final class Matrix {
    private Matrix() {
    }

    public static void fill(Report report, String table, List<Kind> kinds, Column column) {
        try (Site site = column.open()) {
            List<Thread> threads = new ArrayList<>();
            for (Kind kind : kinds) {
                for (Direction direction : Direction.values()) {
                    Thread thread = new Thread(() ->
                            cell(report, table, site, kind, direction, column));
                    thread.setDaemon(true);
                    thread.start();
                    threads.add(thread);
                    if (!column.together()) {
                        join(thread);
                    }
                }
            }
            threads.forEach(Matrix::join);
        }
    }

    private static void cell(Report report, String table, Site site, Kind kind,
            Direction direction, Column column) {
        String row = kind.name() + ": " + direction.text;
        report.cell(table, row, column.title(), () -> {
            try (Pair pair = new Pair(site, kind, direction, Site.name("lock"))) {
                return column.check(pair);
            }
        });
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}

package interop.harness;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;

/** What was tested and whether it holds: tables of cells, and all that does not hold. */
public final class Report {
    private static final int FRAMES = 6;

    private final Map<String, Table> tables = Collections.synchronizedMap(new LinkedHashMap<>());
    private final AtomicInteger tested = new AtomicInteger();
    private final List<String> failures = Collections.synchronizedList(new ArrayList<>());

    /** Runs a test; what it returns is shown in its cell. */
    public void cell(String table, String row, String column, Callable<String> test) {
        String text;
        tested.incrementAndGet();
        try {
            text = test.call();
        } catch (Exception | AssertionError e) {
            text = "FAILS";
            failures.add(table + ", " + row + ", " + column + "\n" + trace(e));
        }
        put(table, row, column, text);
    }

    /** Fills a cell with what only explains. */
    public void put(String table, String row, String column, String text) {
        tables.computeIfAbsent(table, name -> new Table()).put(row, column, text);
    }

    /** Notes that a part did not run to its end. */
    public void broken(String what, Throwable why) {
        failures.add(what + "\n" + trace(why));
    }

    /** Whether everything holds. */
    public boolean print() {
        tables.forEach((name, table) -> System.out.println("\n" + name + "\n\n" + table));
        failures.forEach(failure -> System.out.println("does not hold: " + failure + "\n"));
        System.out.println(failures.isEmpty() ? "all " + tested + " hold"
                : failures.size() + " of " + tested + " do not hold");
        return failures.isEmpty();
    }

    /** What was thrown and by what, and where in the tests. */
    private static String trace(Throwable e) {
        StringBuilder text = new StringBuilder("    " + e);
        Arrays.stream(e.getStackTrace())
                .filter(frame -> frame.getClassName().startsWith("interop."))
                .limit(FRAMES)
                .forEach(frame -> text.append("\n        at ").append(frame));
        return e.getCause() == null ? text.toString() : text + "\n" + trace(e.getCause());
    }
}

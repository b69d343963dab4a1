package interop.harness;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Rows and columns, in the order in which they came. */
final class Table {
    private final Map<String, Map<String, String>> rows = new LinkedHashMap<>();
    private final Set<String> columns = new LinkedHashSet<>();

    synchronized void put(String row, String column, String text) {
        columns.add(column);
        rows.computeIfAbsent(row, name -> new LinkedHashMap<>()).put(column, text);
    }

    @Override
    public synchronized String toString() {
        List<List<String>> lines = new ArrayList<>();
        List<String> head = new ArrayList<>(List.of(""));
        head.addAll(columns);
        lines.add(head);
        rows.forEach((name, cells) -> {
            List<String> line = new ArrayList<>(List.of(name));
            columns.forEach(column -> line.add(cells.getOrDefault(column, "")));
            lines.add(line);
        });
        StringBuilder text = new StringBuilder();
        for (List<String> line : lines) {
            StringBuilder row = new StringBuilder("  ");
            for (int i = 0; i < line.size(); i++) {
                row.append(String.format("%-" + (width(lines, i) + 2) + "s", line.get(i)));
            }
            text.append(row.toString().stripTrailing()).append("\n");
        }
        return text.toString();
    }

    private static int width(List<List<String>> lines, int column) {
        return lines.stream().mapToInt(line -> line.get(column).length()).max().orElse(0);
    }
}

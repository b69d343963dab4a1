package interop.harness;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What RLOCK.INFO says of a lock. */
public record Info(String mode, List<Holder> holders, long waiters) {
    public record Holder(String owner, String mode, long holds, long remaining) {
    }

    public static Info of(Resp control, String key) {
        Map<String, Object> map = map(control.call("RLOCK.INFO", key));
        List<Holder> holders = ((List<?>) map.get("holders")).stream()
                .map(Info::map)
                .map(holder -> new Holder((String) holder.get("owner"),
                        (String) holder.get("mode"), (Long) holder.get("holds"),
                        (Long) holder.get("remaining-ms")))
                .toList();
        return new Info((String) map.get("mode"), holders, (Long) map.get("waiters"));
    }

    /** Whether this owner waits for the lock. */
    public static boolean waits(Resp control, String key, String owner) {
        return ((List<?>) control.call("RLOCK.WAITERS", key)).stream()
                .anyMatch(waiter -> owner.equals(map(waiter).get("owner")));
    }

    /** The only holder. */
    public Holder holder() {
        if (holders.size() != 1) {
            throw new AssertionError("not one holder: " + holders);
        }
        return holders.get(0);
    }

    private static Map<String, Object> map(Object flat) {
        List<?> items = (List<?>) flat;
        Map<String, Object> map = new HashMap<>();
        for (int i = 0; i < items.size(); i += 2) {
            map.put((String) items.get(i), items.get(i + 1));
        }
        return map;
    }
}

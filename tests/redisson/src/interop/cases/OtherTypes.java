package interop.cases;

import interop.harness.Check;
import interop.harness.Report;
import interop.harness.Resp;
import interop.harness.Site;
import java.time.Duration;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RMapCache;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;

/** What Redisson keeps for other purposes is refused, and left as it is to the byte. */
public final class OtherTypes extends Case {
    private static final List<String> COMMANDS = List.of(
            "RLOCK.ACQUIRE % a 60000",
            "RLOCK.ACQUIRE % a 60000 ONCE",
            "RLOCK.ACQUIRE % a 60000 BLOCK 50",
            "RLOCK.ACQUIRE % a 60000 READ",
            "RLOCK.ACQUIRE % a 60000 WRITE",
            "RLOCK.RELEASE % a",
            "RLOCK.RELEASE % a READ",
            "RLOCK.RELEASE % a WRITE ALL",
            "RLOCK.RENEW % a 60000",
            "RLOCK.MACQUIRE 2 % {%}free a 60000",
            "RLOCK.MACQUIRE 2 % {%}free a 60000 BLOCK 50",
            "RLOCK.MRELEASE 2 % {%}free a",
            "RLOCK.MRENEW 2 % {%}free a 60000",
            "RLOCK.FORCE %",
            "RLOCK.INFO %",
            "RLOCK.WAITERS %");

    @Override
    public String name() {
        return "other types";
    }

    @Override
    public void run(Report report) {
        holds(report, "a grouped multi-lock, maps and semaphores are refused and left alone",
                this::areLeftAlone);
    }

    private String areLeftAlone(Site site) {
        Map<String, Runnable> objects = objects(site.firstApplication().client());
        for (Map.Entry<String, Runnable> object : objects.entrySet()) {
            object.getValue().run();
            refused(site.control(), object.getKey());
        }
        return objects.size() + " types, " + COMMANDS.size() + " commands";
    }

    private static Map<String, Runnable> objects(RedissonClient client) {
        Map<String, Runnable> objects = new LinkedHashMap<>();
        objects.put("group", () -> client.getMultiLock("group", List.of("red", "green"))
                .lock(60, TimeUnit.SECONDS));
        objects.put("group-of-one", () -> client.getMultiLock("group-of-one", List.of("red"))
                .lock(60, TimeUnit.SECONDS));
        objects.put("map", () -> client.getMap("map").put("a", "1"));
        objects.put("map-cache", () -> {
            RMapCache<String, String> cache = client.getMapCache("map-cache");
            cache.put("a", "1", 60, TimeUnit.SECONDS);
        });
        objects.put("expiring-map", () -> {
            client.getMap("expiring-map").put("a", 1);
            client.getMap("expiring-map").expire(Duration.ofSeconds(60));
        });
        objects.put("semaphore", () -> client.getSemaphore("semaphore").trySetPermits(3));
        objects.put("permits", () -> client.getPermitExpirableSemaphore("permits").trySetPermits(3));
        objects.put("latch", () -> client.getCountDownLatch("latch").trySetCount(3));
        objects.put("bucket", () -> client.getBucket("bucket").set("a"));
        objects.put("list", () -> client.getList("list").add("a"));
        objects.put("set", () -> client.getSet("set").add("a"));
        objects.put("long", () -> client.getAtomicLong("long").set(1));
        objects.put("rate", () -> client.getRateLimiter("rate")
                .trySetRate(RateType.OVERALL, 1, Duration.ofSeconds(1)));
        return objects;
    }

    private static void refused(Resp control, String key) {
        Object content = content(control, key);
        Object deadline = control.call("PEXPIRETIME", key);
        Check.that(content != null, key + " is there");
        for (String command : COMMANDS) {
            Check.refused("WRONGTYPE", control, command.replace("%", key).split(" "));
            Check.equal(content, content(control, key), key + " after " + command);
        }
        Check.equal(deadline, control.call("PEXPIRETIME", key), "when " + key + " expires");
        Check.equal(0L, control.call("EXISTS", "{" + key + "}free"), "taken of many");
    }

    /** All of a key. The fields of a hash have no order: it changes while its table grows. */
    private static Object content(Resp control, String key) {
        if (!"hash".equals(control.call("TYPE", key))) {
            return control.call("DUMP", key);
        }
        Map<Object, Object> fields = new HashMap<>();
        Iterator<?> all = ((List<?>) control.call("HGETALL", key)).iterator();
        while (all.hasNext()) {
            fields.put(all.next(), all.next());
        }
        return fields;
    }
}

package clients;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.CommandArgs;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/** What hurts clients without QUEUE, NOTIFY, ONCE and CANCEL does not hurt Lettuce. */
final class Main {
    private static final long LEASE = 60_000;
    private static final Consumer<String> NOTHING = reason -> {};

    private static RedisClient client;
    private static RedisClient losing;
    private static StatefulRedisConnection<String, String> admin;
    private static boolean failed;

    interface Check {
        void run(int number, Session session) throws Exception;
    }

    private static void line(int number, String what, boolean good, String seen, Object... words) {
        failed |= !good;
        System.out.println((good ? "ok " : "not ok ") + number + " " + what + ": " + seen.formatted(words));
    }

    private static String owner() {
        return "check:" + UUID.randomUUID();
    }

    private static CompletableFuture<Object> call(
            StatefulRedisConnection<String, String> by, String name, Object... words) {
        var args = new CommandArgs<>(StringCodec.UTF8);
        for (Object word : words) {
            args.add(word.toString());
        }
        CommandOutput<String, String, ?> output = name.equals("RLOCK.INFO") || name.equals("RLOCK.WAITERS")
                ? new NestedMultiOutput<>(StringCodec.UTF8)
                : new Session.Reply();
        return by.async().dispatch(new Session.Named(name), output, args)
                .thenApply(reply -> (Object) reply).toCompletableFuture();
    }

    private static Object ask(String name, Object... words) throws Exception {
        return soon(call(admin, name, words));
    }

    private static <T> T soon(CompletableFuture<T> future) throws Exception {
        return future.get(20, TimeUnit.SECONDS);
    }

    /** What it failed with. */
    private static String refused(CompletableFuture<?> future) throws Exception {
        try {
            return "not refused: " + soon(future);
        } catch (ExecutionException error) {
            return error.getCause().getMessage();
        }
    }

    private static void take(String key) throws Exception {
        ask("RLOCK.ACQUIRE", key, "other", LEASE);
    }

    private static void give(String key) throws Exception {
        ask("RLOCK.RELEASE", key, "other");
    }

    /** A map of the server's, which Lettuce gives flat. */
    private static Map<Object, Object> map(Object value) {
        var map = new LinkedHashMap<Object, Object>();
        var flat = (List<?>) value;
        for (int i = 0; i + 1 < flat.size(); i += 2) {
            map.put(flat.get(i), flat.get(i + 1));
        }
        return map;
    }

    private static Map<Object, Object> info(String key) throws Exception {
        return map(ask("RLOCK.INFO", key));
    }

    private static Map<Object, Object> holder(String key) throws Exception {
        var holders = (List<?>) info(key).get("holders");
        return holders.isEmpty() ? Map.of() : map(holders.get(0));
    }

    private static int holders(String key) {
        try {
            return ((List<?>) info(key).get("holders")).size();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static List<Map<Object, Object>> queue(String key) {
        try {
            return ((List<?>) ask("RLOCK.WAITERS", key)).stream().map(Main::map).toList();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static int place(String key, String mine) {
        return queue(key).stream().map(waiter -> waiter.get("owner")).toList().indexOf(mine);
    }

    private static boolean until(BooleanSupplier condition) throws Exception {
        for (long end = System.nanoTime() + 20_000_000_000L; System.nanoTime() < end; Thread.sleep(10)) {
            if (condition.getAsBoolean()) {
                return true;
            }
        }
        return false;
    }

    private static boolean waiting(String key, int many) throws Exception {
        return until(() -> queue(key).size() == many);
    }

    private static int connections() throws Exception {
        String text = (String) ask("INFO", "clients");
        return Integer.parseInt(text.replaceAll("(?s).*connected_clients:(\\d+).*", "$1"));
    }

    private static void manyWaits(int number, Session session) throws Exception {
        var owners = new LinkedHashMap<String, String>();
        for (int i = 0; i < 200; i++) {
            owners.put("many:" + i, owner());
            take("many:" + i);
        }
        int before = connections();
        var waits = new ArrayList<CompletableFuture<Long>>();
        owners.forEach((key, mine) -> waits.add(session.acquire(key, mine, LEASE, LEASE, NOTHING)));
        for (String key : owners.keySet()) {
            waiting(key, 1);
        }
        Object beside = soon(session.call("SET", "beside", 1));
        int grown = connections() - before;
        for (String key : owners.keySet()) {
            give(key);
        }
        var tokens = new HashSet<Long>();
        for (var wait : waits) {
            tokens.add(soon(wait));
        }
        int freed = 0;
        for (var one : owners.entrySet()) {
            freed += soon(session.call("RLOCK.RELEASE", one.getKey(), one.getValue())).equals(0L) ? 1 : 0;
        }
        line(number, "200 waits on one connection, beside other commands",
                beside.equals("OK") && tokens.size() == 200 && freed == 200 && grown == 0,
                "SET %s, %d granted, %d released, %d more connections", beside, tokens.size(), freed, grown);
    }

    private static void retried(int number, Session session) throws Exception {
        String key = "again", mine = owner();
        take(key);
        var first = session.acquire(key, mine, LEASE, LEASE, NOTHING);
        waiting(key, 1);
        var last = session.acquire(key, owner(), LEASE, LEASE, NOTHING);
        waiting(key, 2);
        var again = session.acquire(key, mine, LEASE, LEASE, NOTHING);
        String older = refused(first);
        int at = place(key, mine);
        give(key);
        long token = soon(again);
        Object holds = holder(key).get("holds");
        ask("RLOCK.RELEASE", key, mine);
        long after = soon(last);
        line(number, "a queued request that is retried keeps its place",
                older.contains("SUPERSEDED") && at == 0 && holds.equals(1L) && after > token,
                "the older: %.20s; place %d, token %d, %s hold, the one behind %d", older, at, token, holds, after);
    }

    /** Lettuce sends again, after it has connected again, what has no reply yet. */
    private static void blockedWhileItBreaks(int number, Session session) throws Exception {
        String key = "block", mine = owner();
        take(key);
        var connection = client.connect();
        var blocked = call(connection, "RLOCK.ACQUIRE", key, mine, LEASE, "BLOCK", 30_000, "ONCE");
        waiting(key, 1);
        Object id = queue(key).get(0).get("client-id");
        ask("CLIENT", "KILL", "ID", id);
        boolean again = until(() -> queue(key).stream().anyMatch(waiter -> !waiter.get("client-id").equals(id)));
        give(key);
        Object token = soon(blocked);
        Object holds = holder(key).get("holds");
        connection.close();
        line(number, "a BLOCK whose connection breaks is sent again with ONCE and ends well",
                again && token instanceof Long && holds.equals(1L),
                "sent again by the library: %s, token %s, %s hold", again, token, holds);
    }

    private static void lostReply(int number, Session session) throws Exception {
        var connection = losing.connect();
        Object token = soon(call(connection, "RLOCK.ACQUIRE", "cut:once", owner(), LEASE, "ONCE"));
        var holder = holder("cut:once");
        connection.close();
        line(number, "the reply is lost, the request that is retried has the token",
                token.equals(holder.get("token")) && holder.get("holds").equals(1L),
                "token %s, %s hold", token, holder.get("holds"));
    }

    private static void givesUp(int number, Session session) throws Exception {
        take("up");
        String mine = owner();
        var wait = session.acquire("up", mine, LEASE, LEASE, NOTHING);
        waiting("up", 1);
        Object ended = soon(session.call("RLOCK.CANCEL", "up", mine));
        Long end = soon(wait);
        int left = queue("up").size();
        var blocked = client.connect();
        call(blocked, "RLOCK.ACQUIRE", "up", owner(), LEASE, "BLOCK", 0);
        var second = new Session(client);
        second.acquire("up", owner(), LEASE, LEASE, NOTHING);
        boolean both = waiting("up", 2);
        blocked.close();
        second.close();
        boolean gone = waiting("up", 0);
        give("up");
        Object mode = info("up").get("mode");
        line(number, "who gives up leaves no waiter: CANCEL, or a closed connection",
                ended.equals(1L) && end == null && left == 0 && both && gone && mode.equals("free"),
                "CANCEL %s, %s, %d left; 2 more waited: %s, closed, gone: %s; then %s", ended, end, left, both, gone, mode);
    }

    private static void cancelled(int number, Session session) throws Exception {
        take("cancel");
        var wait = session.acquire("cancel", owner(), LEASE, 0, NOTHING);
        boolean there = waiting("cancel", 1);
        wait.cancel(true);
        boolean gone = waiting("cancel", 0);
        Object pong = soon(session.call("PING"));
        line(number, "a future that is cancelled ends the wait in the server",
                there && gone && pong.equals("PONG"),
                "waited: %s, gone: %s; the connection goes on: %s", there, gone, pong);
    }

    private static void forceOne(int number, Session session) throws Exception {
        Object id = soon(session.call("CLIENT", "ID"));
        var notified = new CopyOnWriteArrayList<String>();
        for (String key : List.of("force:1", "force:2", "force:3")) {
            soon(session.acquire(key, owner(), LEASE, 0, reason -> notified.add(key + " " + reason), "WATCHDOG"));
        }
        ask("RLOCK.FORCE", "force:2");
        until(() -> !notified.isEmpty());
        Thread.sleep(500); // a connection that is to be closed would be by now
        Object one = holder("force:1").get("watchdog");
        Object three = holder("force:3").get("watchdog");
        boolean same = soon(session.call("CLIENT", "ID")).equals(id);
        line(number, "FORCE of one of three watchdog holds leaves two",
                notified.equals(List.of("force:2 forced")) && id.equals(one) && id.equals(three) && same,
                "notified %s, still held by %s and %s, same connection: %s", notified, one, three, same);
    }

    private static void lossIsNotified(int number, Session session) throws Exception {
        var notified = new CopyOnWriteArrayList<String>();
        long token = soon(session.acquire("loss:1", owner(), LEASE, 0, notified::add));
        soon(session.acquire("loss:2", owner(), LEASE, 0, notified::add, "WATCHDOG"));
        ask("DEL", "loss:1");
        until(() -> notified.size() == 1);
        Object id = soon(session.call("CLIENT", "ID"));
        ask("CLIENT", "KILL", "ID", id);
        until(() -> notified.size() == 2);
        boolean refused = session.call("PING").handle((pong, error) -> error != null).get(20, TimeUnit.SECONDS);
        boolean free = until(() -> holders("loss:2") == 0);
        long newer;
        try (var after = new Session(client)) {
            newer = soon(after.acquire("loss:1", owner(), LEASE, 0, NOTHING));
        }
        line(number, "a loss is notified, a broken connection too, and a new session begins from nothing",
                notified.equals(List.of("deleted", "connection")) && free && refused && newer > token,
                "%s; its watchdog hold ended: %s; refused from then on: %s; a new session has %s", notified, free, refused, newer);
    }

    private static void oneOwner(int number, Session session) throws Exception {
        String ann = owner(), bob = owner();
        Long first = soon(session.acquire("one:1", ann, LEASE, 0, NOTHING));
        soon(session.acquire("one:2", bob, LEASE, 0, NOTHING));
        Long second = soon(session.acquire("one:1", ann, LEASE, 0, NOTHING));
        session.acquire("one:2", ann, LEASE, LEASE, NOTHING);
        waiting("one:2", 1);
        String refused = refused(session.acquire("one:1", bob, LEASE, LEASE, NOTHING));
        line(number, "one owner for each piece of work: no HELD, and DEADLOCK is raised",
                first.equals(second) && refused.startsWith("DEADLOCK"),
                "the same token: %s; %.60s", first.equals(second), refused);
    }

    private static void run(int number, Check check) {
        try (var session = new Session(client)) {
            check.run(number, session);
        } catch (Exception error) {
            error.printStackTrace();
            line(number, "it failed", false, "%s", error);
        }
    }

    public static void main(String[] ports) {
        client = RedisClient.create(RedisURI.create("127.0.0.1", Integer.parseInt(ports[0])));
        losing = RedisClient.create(RedisURI.create("127.0.0.1", Integer.parseInt(ports[1])));
        admin = client.connect();
        run(1, Main::manyWaits);
        run(2, Main::retried);
        run(2, Main::blockedWhileItBreaks);
        run(3, Main::lostReply);
        run(4, Main::givesUp);
        run(5, Main::cancelled);
        run(6, Main::forceOne);
        run(7, Main::lossIsNotified);
        run(8, Main::oneOwner);
        System.exit(failed ? 1 : 0);
    }
}

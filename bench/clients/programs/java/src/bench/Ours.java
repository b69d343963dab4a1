package bench;

import dev.rlock.Hold;
import dev.rlock.Locks;
import dev.rlock.Request;
import dev.rlock.Sticky;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.sync.RedisCommands;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** One session for all workers. */
final class Ours implements Side {
    static final String KEY = "bench:lock";
    private static final String SHARED = "bench:shared";

    private final RedisClient client;
    private final Locks locks;
    private final RedisCommands<String, String> commands;
    /** So that nothing is collected. */
    private final List<Object> kept = new ArrayList<>();

    Ours(int port) {
        client = RedisClient.create(RedisURI.create("127.0.0.1", port));
        locks = Locks.over(client);
        commands = client.connect().sync();
    }

    @Override
    public Worker worker() {
        return (key, act) -> {
            try (Hold hold = locks.acquire(Request.of(key).waitingForEver())) {
                act.run();
            }
        };
    }

    void pair() throws InterruptedException {
        locks.tryAcquire("bench:free").orElseThrow().close();
    }

    void ping() {
        commands.ping();
    }

    Main.Act uses() {
        Sticky sticky = locks.sticky("bench:sticky");
        return () -> sticky.use().close();
    }

    void set() {
        commands.set("bench:set", "owner", SetArgs.Builder.nx().px(10_000));
        commands.del("bench:set");
    }

    /** How the lock that others want too is taken and released. */
    Main.Act shared(boolean sticky) {
        if (!sticky) {
            return () -> locks.acquire(Request.of(SHARED).waitingForEver()).close();
        }
        Sticky lock = locks.sticky(SHARED);
        return () -> lock.use().close();
    }

    /** How long that took, in ns. */
    long take() throws InterruptedException {
        long begin = System.nanoTime();
        try (Hold hold = locks.acquire(Request.of(SHARED).waitingForEver())) {
            return System.nanoTime() - begin;
        }
    }

    /** Bytes for each of so many holds and as many waits. */
    long crowd(int size) throws Exception {
        take(Locks.over(client), "taken:", size);
        long before = memory();
        take(locks, "held:", size);
        for (int n = 0; n < size; n++) {
            kept.add(locks.acquireAsync(Request.of("taken:" + n).waitingForEver()));
        }
        while (!commands.info("rlock").contains("rlock_queued:" + size + "\r")) {
            Thread.sleep(10);
        }
        return (memory() - before) / (2L * size);
    }

    private void take(Locks by, String name, int size) throws Exception {
        List<CompletableFuture<Hold>> asked = new ArrayList<>();
        for (int n = 0; n < size; n++) {
            asked.add(by.acquireAsync(Request.of(name + n)));
        }
        for (CompletableFuture<Hold> hold : asked) {
            kept.add(hold.get());
        }
    }

    /** The heap in use, after a collection. */
    private static long memory() {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}

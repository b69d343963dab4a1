package bench;

import dev.rlock.Hold;
import dev.rlock.Locks;
import dev.rlock.Request;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.sync.RedisCommands;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** One session for all workers. */
final class Ours implements Side {
    static final String KEY = "bench:lock";

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

package interop.harness;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** An application that uses Redisson: one client for each server that it needs. */
public final class Application implements AutoCloseable {
    private static final int POOL = 24;
    private static final int TIMEOUT_MS = 10_000;

    private final Site site;
    private final long watchdogMs;
    private final Map<Integer, RedissonClient> clients = new ConcurrentHashMap<>();

    Application(Site site, long watchdogMs) {
        this.site = site;
        this.watchdogMs = watchdogMs;
    }

    /** The client of the site's first server. */
    public RedissonClient client() {
        return client(0);
    }

    public RedissonClient client(int server) {
        return clients.computeIfAbsent(server, this::connect);
    }

    /** The name under which a thread of this application owns a lock. */
    public String owner(int server, long thread) {
        return client(server).getId() + ":" + thread;
    }

    private RedissonClient connect(int server) {
        Config config = new Config();
        config.setThreads(4);
        config.setNettyThreads(4);
        config.setLockWatchdogTimeout(watchdogMs);
        String address = "redis://127.0.0.1:" + site.server(server).port();
        if (site.isCluster()) {
            config.useClusterServers().addNodeAddress(address).setTimeout(TIMEOUT_MS)
                    .setMasterConnectionMinimumIdleSize(1).setMasterConnectionPoolSize(POOL);
        } else {
            config.useSingleServer().setAddress(address).setTimeout(TIMEOUT_MS)
                    .setConnectionMinimumIdleSize(1).setConnectionPoolSize(POOL);
        }
        return Redisson.create(config);
    }

    /** Ends it as a crash would: what it holds stays held until the lease ends. */
    @Override
    public void close() {
        clients.values().forEach(client -> client.shutdown(0, 1, TimeUnit.SECONDS));
        clients.clear();
    }
}

package bench;

import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** Redisson's locks, with a client of its own for each worker or one for all, and its defaults. */
final class Theirs implements Side {
    private final int port;
    private final boolean fair;
    /** Of all workers; null where each has its own. */
    private final RedissonClient shared;

    Theirs(int port, boolean fair, boolean share) {
        this.port = port;
        this.fair = fair;
        this.shared = share ? client(true) : null;
    }

    @Override
    public Worker worker() {
        RedissonClient client = shared == null ? client(false) : shared;
        return new Worker() {
            @Override
            public void turn(String key, Runnable act) {
                RLock lock = fair ? client.getFairLock(key) : client.getLock(key);
                lock.lock();
                try {
                    act.run();
                } finally {
                    lock.unlock();
                }
            }

            @Override
            public void close() {
                if (client != shared) {
                    client.shutdown();
                }
            }
        };
    }

    private RedissonClient client(boolean share) {
        Config config = new Config();
        SingleServerConfig single = config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
        if (!share) {
            // Its own defaults are 24 connections at once and 48 threads, too many for 100 clients.
            single.setConnectionMinimumIdleSize(1);
            config.setThreads(2).setNettyThreads(2);
        }
        return Redisson.create(config);
    }
}

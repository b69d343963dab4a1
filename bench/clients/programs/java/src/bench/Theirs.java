package bench;

import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's locks, with a client of its own for each worker, and its defaults. */
final class Theirs implements Side {
    private final int port;
    private final boolean fair;

    Theirs(int port, boolean fair) {
        this.port = port;
        this.fair = fair;
    }

    @Override
    public Worker worker() {
        RedissonClient client = client();
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
                client.shutdown();
            }
        };
    }

    private RedissonClient client() {
        Config config = new Config();
        // Its own defaults are 24 connections at once and 48 threads, too many for 100 clients.
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setConnectionMinimumIdleSize(1);
        config.setThreads(2).setNettyThreads(2);
        return Redisson.create(config);
    }
}

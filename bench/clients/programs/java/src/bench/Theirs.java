package bench;

import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
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
    public void warmUp() {
        RedissonClient client = client();
        RLock lock = client.getLock("warm:" + ProcessHandle.current().pid());
        lock.lock();
        lock.unlock();
        client.shutdown();
    }

    private RedissonClient client() {
        Config config = new Config();
        // Its own defaults are 24 connections at once and 48 threads, too many for 100 clients.
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setConnectionMinimumIdleSize(1);
        config.setThreads(2).setNettyThreads(2);
        return Redisson.create(config);
    }

    @Override
    public Turn worker(String me) {
        RedissonClient client = client();
        RLock lock = fair ? client.getFairLock(Ours.KEY) : client.getLock(Ours.KEY);
        RBucket<String> last = client.getBucket(LAST, StringCodec.INSTANCE);
        return () -> {
            lock.lock();
            try {
                return last.getAndSet(me);
            } finally {
                lock.unlock();
            }
        };
    }
}

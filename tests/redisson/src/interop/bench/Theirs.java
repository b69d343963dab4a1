package interop.bench;

import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.config.Config;

/** By Redisson's semaphore whose permits have leases, with a Redisson client of its own. */
final class Theirs implements Client {
    // Clients of a process share these threads: with some of their own each they are slower.
    private static final EventLoopGroup NETTY = new NioEventLoopGroup(4);
    private static final ExecutorService THREADS = Executors.newFixedThreadPool(4);

    private final RPermitExpirableSemaphore semaphore;
    private String permit;

    Theirs(int port) {
        Config config = new Config();
        config.setEventLoopGroup(NETTY);
        config.setExecutor(THREADS);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setTimeout(10_000)
                .setConnectionMinimumIdleSize(1).setConnectionPoolSize(2)
                .setSubscriptionConnectionMinimumIdleSize(1).setSubscriptionConnectionPoolSize(1);
        semaphore = Redisson.create(config).getPermitExpirableSemaphore(Permits.NAME);
        semaphore.trySetPermits(Permits.LIMIT);
    }

    @Override
    public void take() {
        try {
            permit = semaphore.acquire(Permits.LEASE_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void giveBack() {
        semaphore.release(permit);
    }

    @Override
    public int available() {
        return semaphore.availablePermits();
    }
}

package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rlock.shedlock.RlockLockProvider;
import io.lettuce.core.RedisClient;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.test.support.AbstractExtensibleLockProviderIntegrationTest;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** ShedLock's own tests of a provider. */
class ShedLockTest extends AbstractExtensibleLockProviderIntegrationTest {
    private static Server server;
    private static RedisClient client;
    private static Locks locks;

    @BeforeAll
    static void start() {
        server = new Server();
        client = Server.client(server.port);
        locks = Locks.over(client);
    }

    @AfterAll
    static void stop() {
        locks.close();
        client.shutdown(0, 0, TimeUnit.SECONDS);
        server.close();
    }

    @Override
    protected ExtensibleLockProvider getLockProvider() {
        return new RlockLockProvider(locks);
    }

    /** For a moment, or the process was paused meanwhile. */
    @Test
    void extendedToATimeThatIsOver() {
        var clock = new AtomicReference<>(Instant.now());
        ClockProvider.setClock(new Clock() {
            @Override
            public Instant instant() {
                return clock.updateAndGet(now -> now.plusMillis(10));
            }

            @Override
            public ZoneId getZone() {
                return ZoneOffset.UTC;
            }

            @Override
            public Clock withZone(ZoneId zone) {
                return this;
            }
        });
        try {
            var minute = Duration.ofMinutes(1);
            var lock = getLockProvider().lock(new LockConfiguration(clock.get(), "over", minute, Duration.ZERO));
            assertTrue(lock.orElseThrow().extend(Duration.ofMillis(5), Duration.ZERO).isPresent());
            server.awaitFree("shedlock:over");
        } finally {
            ClockProvider.setClock(Clock.systemUTC());
        }
    }

    @Override
    protected void assertUnlocked(String name) {
        assertTrue(server.isFree("shedlock:" + name));
    }

    @Override
    protected void assertLocked(String name) {
        assertFalse(server.isFree("shedlock:" + name));
    }
}

package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rlock.shedlock.RlockLockProvider;
import io.lettuce.core.RedisClient;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.test.support.AbstractExtensibleLockProviderIntegrationTest;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

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

    @Override
    protected void assertUnlocked(String name) {
        assertTrue(server.isFree("shedlock:" + name));
    }

    @Override
    protected void assertLocked(String name) {
        assertFalse(server.isFree("shedlock:" + name));
    }
}

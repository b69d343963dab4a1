package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rlock.shedlock.RlockLockProvider;
import dev.rlock.spring.RlockLockRegistry;
import java.time.Duration;
import java.time.Instant;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import org.junit.jupiter.api.Test;

/** What a close does to holds under way, and what the adapters refuse. */
class ShedLockCloseTest extends WithServer {
    private static final Duration MOST = Duration.ofMinutes(1);

    private SimpleLock job(Locks by, Duration least) {
        return new RlockLockProvider(by).lock(new LockConfiguration(Instant.now(), key, MOST, least)).orElseThrow();
    }

    private long left() {
        return Long.parseLong(server.say("PTTL shedlock:" + key).toString());
    }

    @Test
    void aCloseLeavesALockToItsLeastTime() throws Exception {
        try (var others = LocksTest.through(server.port)) {
            var job = job(others.locks(), Duration.ofSeconds(30));
            others.locks().close();
            assertFalse(server.isFree("shedlock:" + key));
            assertTrue(left() > 10_000 && left() <= 30_000, left() + " ms");
            job.unlock(); // says nothing, as ever
        }
        server.say("RLOCK.FORCE shedlock:" + key);
    }

    @Test
    void aCloseFreesALockWithoutOneOrAfterIt() throws Exception {
        try (var others = LocksTest.through(server.port)) {
            job(others.locks(), Duration.ZERO);
        }
        assertTrue(server.isFree("shedlock:" + key));
        try (var others = LocksTest.through(server.port)) {
            job(others.locks(), Duration.ofMillis(50));
            Thread.sleep(60); // it is over
        }
        assertTrue(server.isFree("shedlock:" + key));
    }

    @Test
    void anExtensionSaysTheLeastTimeAnew() throws Exception {
        var job = job(locks, Duration.ofSeconds(30));
        var shorter = job.extend(MOST, Duration.ZERO).orElseThrow();
        shorter.unlock();
        assertTrue(server.isFree("shedlock:" + key));
        var longer = job(locks, Duration.ZERO).extend(MOST, Duration.ofSeconds(40)).orElseThrow();
        longer.unlock();
        assertTrue(left() > 20_000 && left() <= 40_000, left() + " ms");
        server.say("RLOCK.FORCE shedlock:" + key);
    }

    @Test
    void aLeastTimeIsKeptOverALostConnection() throws Exception {
        try (var proxy = new Proxy(server.port); var through = LocksTest.through(proxy)) {
            var job = job(through.locks(), Duration.ofSeconds(30));
            proxy.cutAt("RLOCK.RENEW", false);
            job.unlock();
            Server.await("its rest", () -> left() <= 30_000);
            assertTrue(left() > 10_000, left() + " ms");
        }
        assertTrue(left() > 10_000, left() + " ms");
        server.say("RLOCK.FORCE shedlock:" + key);
    }

    @Test
    void whatTheAdaptersRefuse() {
        assertThrows(NullPointerException.class, () -> new RlockLockProvider(locks, null));
        assertThrows(NullPointerException.class, () -> new RlockLockProvider(null));
        assertThrows(NullPointerException.class, () -> new RlockLockRegistry(locks, null));
        assertThrows(NullPointerException.class, () -> new RlockLockRegistry(null, "app:"));
        assertThrows(IllegalArgumentException.class, () -> new RlockLockRegistry(locks, "app:", Duration.ZERO));
        assertThrows(IllegalArgumentException.class, () -> new RlockLockRegistry(locks, "\ud800"));
        var registry = new RlockLockRegistry(locks, "app:");
        for (Object key : new Object[] {null, "", 7, new Object(), "\udc00"}) {
            assertThrows(IllegalArgumentException.class, () -> registry.obtain(key));
        }
        assertEquals("ThreadLock[app:a]", registry.obtain("a").toString());
    }
}

package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rlock.LocksTest.Through;
import io.lettuce.core.RedisClient;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Connections that break, and servers that go, stop and come back. */
class ConnectionTest extends WithServer {
    private Proxy proxy;
    private Through through;

    @BeforeEach
    void between() throws Exception {
        proxy = new Proxy(server.port);
        through = LocksTest.through(proxy);
        locks.close();
        locks = through.locks();
        locks.acquire("first", LONG).release();
    }

    @AfterEach
    void away() {
        through.close();
        proxy.close();
    }

    @Test
    void aHoldIsLostWithItsConnection() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        proxy.refuse(true);
        proxy.cut();
        assertEquals("connection", reason(hold));
        proxy.refuse(false);
        server.awaitFree(key);
        locks.acquire(key, LONG).release();
    }

    @Test
    void aWaitKeepsItsPlace() throws Exception {
        take(key);
        var first = locks.acquireAsync(Request.of(key).waiting(LONG));
        server.awaitWaiters(key, 1);
        proxy.cut();
        server.awaitWaiters(key, 1);
        give(key);
        Hold hold = first.get(20, TimeUnit.SECONDS);
        assertFalse(hold.isLost());
        hold.release();
    }

    @Test
    void aLostReplyToATryIsAskedForAgain() throws Exception {
        proxy.cutAt("RLOCK.ACQUIRE", true);
        Hold hold = locks.acquire(key, Duration.ZERO);
        assertTrue(proxy.hasCut());
        assertEquals(1, server.holders(key));
        assertFalse(hold.isLost());
        hold.release();
        assertTrue(server.isFree(key));
    }

    @Test
    void aRequestThatNeverArrivedIsAskedForAgain() throws Exception {
        proxy.cutAt("RLOCK.ACQUIRE", false);
        locks.acquire(key, Duration.ZERO).release();
        assertTrue(proxy.hasCut());
        assertTrue(server.isFree(key));
    }

    @Test
    void aReleaseWhoseConnectionBreaksIsDone() throws Exception {
        Hold hold = locks.acquire(Request.of(key).watchdog(false).lease(LONG));
        proxy.cutAt("RLOCK.RELEASE", false);
        hold.release();
        assertTrue(proxy.hasCut());
        server.awaitFree(key);
    }

    @Test
    void aPlainHoldOutlivesItsConnection() throws Exception {
        Hold hold = locks.acquire(Request.of(key).watchdog(false).lease(LONG));
        proxy.cut();
        hold.renew(LONG);
        assertFalse(hold.isLost());
        hold.release();
        server.awaitFree(key);
    }

    @Test
    void aWaitThatWasGivenUpWithoutAConnectionIsEnded() throws Exception {
        take(key);
        var wait = locks.acquireAsync(Request.of(key).waitingForEver());
        server.awaitWaiters(key, 1);
        proxy.refuse(true);
        proxy.cut();
        server.awaitWaiters(key, 0);
        wait.cancel(true);
        proxy.refuse(false);
        give(key);
        server.awaitFree(key);
        locks.acquire(key, LONG).release();
    }

    @Test
    void withoutAConnectionATryFailsInTime() {
        proxy.refuse(true);
        proxy.cut();
        var client = Server.client(proxy.port);
        try (var impatient = Locks.over(client, Duration.ofMillis(300))) {
            assertThrows(ConnectionException.class, () -> impatient.acquire(key, Duration.ZERO));
            assertThrows(ConnectionException.class, () -> impatient.acquire(key, Duration.ofMillis(400)));
        }
        client.shutdown(0, 0, TimeUnit.SECONDS);
    }

    @Test
    void aKilledServerThatComesBackIsUsedAgain() throws Exception {
        try (var own = new Server("--appendonly", "yes", "--appendfsync", "always")) {
            RedisClient client = Server.client(own.port);
            try (var locks = Locks.over(client)) {
                Hold hold = locks.acquire(key, LONG);
                own.say("RLOCK.ACQUIRE taken other 60000");
                var wait = locks.acquireAsync(Request.of("taken").waiting(LONG));
                own.awaitWaiters("taken", 1);
                own.kill();
                assertEquals("connection", reason(hold));
                own.start();
                // What was lost is released there, and the wait goes on.
                own.awaitFree(key);
                own.awaitWaiters("taken", 1);
                own.say("RLOCK.RELEASE taken other");
                wait.get(20, TimeUnit.SECONDS).release();
            }
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    @Test
    void aStoppedServerMeansLossWithinALease() throws Exception {
        try (var own = new Server()) {
            RedisClient client = Server.client(own.port);
            try (var locks = Locks.over(client)) {
                var lease = Duration.ofSeconds(5);
                Hold hold = locks.acquire(Request.of(key).lease(lease));
                long began = System.nanoTime();
                own.signal("STOP");
                assertEquals("connection", reason(hold));
                long took = System.nanoTime() - began;
                assertTrue(took < lease.multipliedBy(4).toNanos(), "lost after " + took / 1_000_000 + " ms");
                own.signal("CONT");
                locks.acquire(key, LONG).release();
            }
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }
}

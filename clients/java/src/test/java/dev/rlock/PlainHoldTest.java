package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rlock.LocksTest.Through;
import dev.rlock.shedlock.RlockLockProvider;
import io.lettuce.core.RedisClient;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.LockConfiguration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the server does not renew outlives its connection, and the next one is notified of its loss. */
class PlainHoldTest extends WithServer {
    private Proxy proxy;
    private Through through;

    @BeforeEach
    void between() throws Exception {
        proxy = new Proxy(server.port);
        through = LocksTest.through(proxy);
        locks.close();
        locks = through.locks();
    }

    @AfterEach
    void away() {
        through.close();
        proxy.close();
    }

    private static Request plain(Request request) {
        return request.watchdog(false).lease(Duration.ofMinutes(1));
    }

    /** Of each kind. */
    private List<Hold> some(String name) throws Exception {
        var all = new ArrayList<Hold>();
        for (Request request : List.of(
                Request.of(name),
                Request.of(name + ":read").read(),
                Request.of(name + ":permits").limit(3).permits(2),
                Request.of(name + ":many", name + ":2"))) {
            all.add(locks.acquire(plain(request)));
        }
        return all;
    }

    private static void force(Hold hold) {
        server.say("RLOCK.FORCE " + hold.key());
    }

    private void cutWhile(Runnable act) {
        proxy.refuse(true);
        proxy.cut();
        act.run();
        proxy.refuse(false);
    }

    @Test
    void whatIsForcedWhileTheConnectionIsAwayIsLostWhenItIsBack() throws Exception {
        var forced = some(key);
        var others = some(key + ":stays");
        cutWhile(() -> forced.forEach(PlainHoldTest::force));
        for (Hold hold : forced) {
            assertEquals("expired", reason(hold));
            assertThrows(LostException.class, hold::release);
        }
        server.awaitFree(key + ":2");
        for (Hold hold : others) {
            hold.renew(LONG);
            hold.release();
            assertTrue(server.isFree(hold.key()));
        }
    }

    @Test
    void whatIsForcedAfterwardsIsNotifiedAtOnce() throws Exception {
        var holds = some(key);
        proxy.holdAt("RLOCK.RENEW");
        cutWhile(() -> {});
        proxy.awaitHolding();
        proxy.hold(false);
        for (Hold hold : holds) {
            // By a question behind that of the session, so that its channel is known.
            locks.acquire(key + ":beside", LONG).release();
            force(hold);
            assertEquals("forced", reason(hold));
        }
    }

    @Test
    void theDeadlineStays() throws Exception {
        var lease = Duration.ofSeconds(16);
        long began = System.nanoTime();
        Hold hold = locks.acquire(Request.of(key).watchdog(false).lease(lease));
        long taken = System.nanoTime();
        Thread.sleep(8_000); // so that a lease that began anew would be seen
        long cut = System.nanoTime();
        proxy.holdAt("RLOCK.RENEW");
        cutWhile(() -> {});
        proxy.awaitHolding();
        proxy.hold(false);
        locks.acquire(key + ":beside", LONG).release(); // behind the renewal
        // The message that says how much was left takes its time.
        long most = lease.toMillis() - (System.nanoTime() - taken) / 1_000_000 + 6_000;
        long left = (Long) server.say("PTTL " + key);
        long least = lease.toMillis() - (System.nanoTime() - began) / 1_000_000 - 100;
        assertTrue(left > least && left < most, left + " ms are left, and not " + least + " to " + most);
        assertFalse(hold.isLost());
        reason(hold);
        long took = (System.nanoTime() - began) / 1_000_000;
        assertTrue(took > 15_950 && System.nanoTime() - cut < lease.toNanos(), "lost after " + took + " ms");
    }

    @Test
    void aRenewalThatTheConnectionLostStands() throws Exception {
        Hold hold = locks.acquire(Request.of(key).watchdog(false).lease(Duration.ofSeconds(20)));
        proxy.cutAt("RLOCK.RENEW", true);
        hold.renew(Duration.ofMinutes(1));
        assertTrue(proxy.hasCut());
        assertTrue((Long) server.say("PTTL " + key) > 30_000);
        hold.release();
    }

    @Test
    void aReleaseBehindTheQuestionReportsTheLoss() throws Exception {
        for (boolean forced : new boolean[] {false, true}) {
            Hold hold = locks.acquire(plain(Request.of(key)));
            proxy.holdAt("RLOCK.RENEW");
            cutWhile(() -> {
                if (forced) {
                    force(hold);
                }
            });
            proxy.awaitHolding();
            var released = CompletableFuture.runAsync(hold::release);
            proxy.hold(false);
            if (forced) {
                var error = assertThrows(Exception.class, () -> released.get(20, TimeUnit.SECONDS));
                assertEquals("expired", ((LostException) error.getCause()).reason());
            } else {
                released.get(20, TimeUnit.SECONDS);
            }
            server.awaitFree(key);
        }
    }

    @Test
    void aServerThatComesBackWithoutItsDataHasLostThem() throws Exception {
        try (var own = new Server()) {
            RedisClient client = Server.client(own.port);
            try (var locks = Locks.over(client)) {
                Hold hold = locks.acquire(plain(Request.of(key)));
                Hold many = locks.acquire(plain(Request.of(key + ":1", key + ":2")));
                own.kill();
                assertFalse(hold.isLost());
                own.start();
                assertEquals("expired", reason(hold));
                assertEquals("expired", reason(many));
            }
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    @Test
    void shedLockDoesNotExtendWhatWasForcedMeanwhile() {
        var configuration = new LockConfiguration(Instant.now(), key, Duration.ofMinutes(1), Duration.ZERO);
        var lock = new RlockLockProvider(locks).lock(configuration).orElseThrow();
        cutWhile(() -> server.say("RLOCK.FORCE shedlock:" + key));
        assertTrue(lock.extend(Duration.ofMinutes(1), Duration.ZERO).isEmpty());
        // Nor does it take away what its successor has.
        server.say("RLOCK.ACQUIRE shedlock:" + key + " other 60000");
        assertThrows(IllegalStateException.class, lock::unlock);
        assertFalse(server.isFree("shedlock:" + key));
    }
}

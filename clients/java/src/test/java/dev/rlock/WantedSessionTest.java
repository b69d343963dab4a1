package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.RedisClient;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a session asks for to know whether its holds are wanted, and when: on each connection, and of older modules. */
class WantedSessionTest extends WithOthers {
    /** As an older module has none. */
    private static final String OLD = "WANTEB";

    @AfterEach
    void mayRenew() {
        server.say("ACL SETUSER default +rlock.renew");
    }

    @Test
    void aRenewalOfTheProgramsThatIsUnderWayStays() throws Exception {
        for (boolean watchdog : new boolean[] {false, true}) {
            Hold hold = locks.acquire(plain(20).watchdog(watchdog));
            int asked = proxy.said(WANTED);
            proxy.hold(true);
            var renewed = hold.renewAsync(Duration.ofMinutes(10));
            assertFalse(hold.isWanted());
            proxy.hold(false);
            renewed.get(20, TimeUnit.SECONDS);
            awaitAsked(WANTED, asked + 1);
            isRead(locks);
            assertTrue((Long) server.say("PTTL " + key) > 300_000);
            hold.release();
        }
    }

    @Test
    void theNextConnectionIsAskedToo() throws Exception {
        Hold hold = locks.acquire(plain(60));
        var wanted = hold.wanted();
        proxy.refuse(true);
        proxy.cut();
        var waits = waits(Request.of(key));
        assertFalse(hold.isWanted());
        assertFalse(wanted.isDone());
        proxy.refuse(false);
        assertTrue(end(wanted));
        hold.release();
        has(waits);
    }

    @Test
    void aFirstUseWithoutAConnectionWaitsForNothing() throws Exception {
        Hold hold = locks.acquire(plain(60));
        proxy.refuse(true);
        proxy.cut();
        assertFalse(hold.isWanted());
        var wanted = hold.wanted();
        proxy.refuse(false);
        isRead(locks);
        assertFalse(wanted.isDone());
        var waits = waits(Request.of(key));
        assertTrue(end(wanted));
        hold.release();
        has(waits);
    }

    @Test
    void whatEndsWithItsConnectionIsNotWantedAnyMore() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var wanted = hold.wanted();
        proxy.cut();
        assertFalse(end(wanted));
        assertEquals("connection", reason(hold));
        assertFalse(hold.isWanted());
    }

    /** Two that somebody waits for are not, and nothing else is different. */
    private void isNeverWanted(String word) throws Exception {
        var lease = Duration.ofMinutes(2); // for the server renews none whose user may not
        Hold watched = locks.acquire(Request.of(key).lease(lease));
        Hold plain = locks.acquire(Request.of(key + ":plain").watchdog(false).lease(lease));
        var all = List.of(watched.wanted(), plain.wanted());
        var waits = List.of(waits(Request.of(key)), waits(Request.of(key + ":plain")));
        isRead(locks);
        for (Hold hold : List.of(watched, plain, locks.acquire(key + ":third", LONG))) {
            assertFalse(hold.isWanted());
            assertFalse(hold.isLost());
        }
        Thread.sleep(1_500); // nor is it asked again
        isRead(locks);
        assertTrue(all.stream().noneMatch(CompletableFuture::isDone));
        assertNotEquals(0, proxy.said(word));
        assertTrue(proxy.said(word) <= 2, proxy.asked());
        watched.release();
        plain.release();
        for (var one : waits) {
            has(one);
        }
    }

    @Test
    void anOlderModuleIsNotAskedAgain() throws Exception {
        proxy.unknown("WANTED", OLD);
        isNeverWanted("\n" + OLD + "\n");
    }

    @Test
    void whoMayNotAskIsNotWanted() throws Exception {
        server.say("ACL SETUSER default -rlock.renew");
        isNeverWanted(WANTED);
    }

    @Test
    void whatAnOlderModuleSaysNothingOfIsRegained() throws Exception {
        Hold hold = locks.acquire(plain(60));
        var wanted = hold.wanted();
        awaitAsked(WANTED, 1);
        isRead(locks);
        proxy.unknown("WANTED", OLD);
        proxy.cut();
        awaitAsked("\n" + OLD + "\n", 1);
        isRead(locks);
        isRead(locks); // which comes behind what was asked after the refusal
        server.say("RLOCK.FORCE " + key);
        assertEquals("forced", reason(hold));
        assertFalse(end(wanted));
        assertEquals(1, proxy.said("\n" + OLD + "\n"));
    }

    @Test
    void whatTheServerDoesNotDoNowIsAskedForAgain() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        server.say("CONFIG SET min-replicas-to-write 1");
        try {
            var wanted = hold.wanted();
            awaitAsked(WANTED, 2);
            server.say("CONFIG SET min-replicas-to-write 0");
            var waits = waits(Request.of(key));
            assertTrue(end(wanted));
            hold.release();
            has(waits);
        } finally {
            server.say("CONFIG SET min-replicas-to-write 0");
        }
    }

    @Test
    void withoutTheModuleNothingIsSaid() throws Exception {
        try (var bare = Server.plain(); var between = new Proxy(bare.port)) {
            RedisClient client = Server.client(between.port);
            try (var without = Locks.over(client)) {
                Hold hold = without.acquire(Request.of(key).lease(Duration.ofSeconds(9)));
                assertFalse(hold.isWanted());
                Server.await("it is renewed", () -> between.said("\nrlock1_renew\n") > 0);
                assertEquals(0, between.said(WANTED)); // the library has it in its text
                hold.release();
            }
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    /** More words may follow the token. */
    @Test
    void aGrantMaySayThatItIsWanted() throws Exception {
        proxy.unknown("$4\r\nONCE\r\n", "$6\r\nWANTED\r\n");
        take(key);
        var first = locks.acquireAsync(Request.of(key).waitingForEver());
        server.awaitWaiters(key, 1);
        var waits = others.locks().acquireAsync(Request.of(key).waitingForEver());
        server.awaitWaiters(key, 2);
        give(key);
        Hold hold = first.get(20, TimeUnit.SECONDS);
        assertTrue(hold.token() > 0);
        hold.release();
        has(waits);
    }
}

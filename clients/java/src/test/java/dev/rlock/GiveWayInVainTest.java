package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.RedisClient;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** A hold that gives way is none again: it is over, nothing is left on the server, and its scope throws nothing more. */
class GiveWayInVainTest extends WithWay {
    private static final Duration SHORT = Duration.ofMillis(300);
    /** As each request says. */
    private static final String ASKED = "\nONCE(?=\n)";

    @Test
    void theTimeIsOver() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var lost = hold.lost().toCompletableFuture();
        var waits = wantedBy(hold, Request.of(key));
        assertThrows(NotAcquiredException.class, () -> hold.giveWay(SHORT, NONE));
        Hold between = of(waits);
        assertEquals("released", lost.get(20, TimeUnit.SECONDS).reason());
        isOver(hold, "released");
        assertEquals(0, server.waiters(key));
        assertFalse(between.isLost());
        between.release();
        locks.acquire(key, LONG).release();
    }

    @Test
    void theScopeThrowsNothingMore() throws Exception {
        CompletableFuture<Hold> waits;
        try (Hold hold = locks.acquire(key, LONG)) {
            waits = wantedBy(hold, Request.of(key));
            assertThrows(NotAcquiredException.class, () -> hold.giveWay(SHORT, NONE));
        }
        has(waits);
        var error = assertThrows(NotAcquiredException.class, () -> {
            try (Hold hold = locks.acquire(key, LONG)) {
                wantedBy(hold, Request.of(key)).thenAccept(Hold::close);
                others.locks().acquireAsync(Request.of(key).waitingForEver()).thenAccept(other -> {
                    server.awaitWaiters(key, 0); // the other one has waited in vain
                    other.close();
                });
                server.awaitWaiters(key, 2);
                hold.giveWay(SHORT, NONE);
            }
        });
        assertEquals(0, error.getSuppressed().length);
        server.awaitFree(key);
    }

    /** Who was served waits for another lock of the job. */
    @Test
    void aDeadlock() throws Exception {
        Job job = locks.job();
        Job theirs = others.locks().job();
        Hold other = locks.acquire(Request.of(key + ":other").job(job));
        Hold hold = locks.acquire(Request.of(key).job(job));
        var waits = waits(Request.of(key).job(theirs));
        var more = waits(Request.of(key + ":other").job(theirs));
        awaitWanted(hold, true);
        assertThrows(DeadlockException.class, () -> hold.giveWay(null, NONE));
        Hold between = of(waits);
        isOver(hold, "released");
        assertFalse(other.isLost());
        other.release();
        has(more);
        between.release();
        locks.acquire(Request.of(key).job(job).waiting(LONG)).release();
    }

    @Test
    void aUserWhoMayNotAnyMore() throws Exception {
        for (boolean ofAJob : new boolean[] {false, true}) {
            for (String verb : List.of("acquire", "release")) {
                String name = key + ":" + verb + ofAJob;
                Request request = Request.of(name).lease(Duration.ofSeconds(6)).waiting(LONG); // so that it is retried soon
                request = ofAJob ? request.job(locks.job()) : request;
                Hold hold = locks.acquire(request);
                var waits = wantedBy(hold, Request.of(name));
                server.say("ACL SETUSER default -rlock." + verb);
                try {
                    var refused = assertThrows(RefusedException.class, () -> hold.giveWay(null, NONE));
                    assertEquals("NOPERM", refused.code());
                    if (verb.equals("release")) {
                        server.awaitWaiters(name, 1); // what was asked for is cancelled
                        assertFalse(waits.isDone());
                    }
                    isOver(hold, "released");
                } finally {
                    server.say("ACL SETUSER default +rlock." + verb);
                }
                // The job's next one comes behind the release, and is not the one that is to end.
                var next = locks.acquireAsync(request);
                long between = of(waits).token();
                assertTrue(between > hold.token());
                has(waits);
                assertTrue(of(next).token() > between);
                has(next);
                server.awaitFree(name);
            }
        }
    }

    /** It is no hold that could give way: so it is not acquired anew. */
    @Test
    void aLossThatItLearnsOfOnlyThen() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var waits = wantedBy(hold, Request.of(key));
        proxy.hold(true);
        server.say("RLOCK.FORCE " + key);
        Hold between = of(waits);
        var gives = gives(hold);
        awaitAsked("\nRLOCK.RELEASE\n", 1);
        proxy.hold(false);
        assertInstanceOf(LostException.class, failure(gives));
        isOver(hold, "forced");
        server.awaitWaiters(key, 0);
        assertFalse(between.isLost());
        between.release();
        server.awaitFree(key);
    }

    /** The request goes on by the next one. */
    @Test
    void aConnectionThatBreaksDoesNotEndIt() throws Exception {
        for (boolean ofAJob : new boolean[] {false, true}) {
            for (Request request : List.of(Request.of(key), plain(60))) {
                Hold hold = locks.acquire(ofAJob ? request.job(locks.job()) : request);
                var waits = wantedBy(hold, Request.of(key));
                var gives = gives(hold);
                Hold between = of(waits);
                server.awaitWaiters(key, 1);
                int asked = proxy.said(ASKED);
                proxy.cut();
                awaitAsked(ASKED, asked + 1);
                assertFalse(gives.isDone());
                comesBack(hold, gives, between);
                hold.release();
                server.awaitFree(key);
            }
        }
    }

    /** Nor one before the release was answered, whether the server has got it or not. */
    @Test
    void aConnectionThatBreaksBeforeTheReply() throws Exception {
        for (boolean ofAJob : new boolean[] {false, true}) {
            for (boolean serverHears : new boolean[] {false, true}) {
                for (Request request : List.of(Request.of(key), plain(60))) {
                    Hold hold = locks.acquire(ofAJob ? request.job(locks.job()) : request);
                    var waits = wantedBy(hold, Request.of(key));
                    proxy.cutAt("RLOCK.RELEASE", serverHears);
                    var gives = gives(hold);
                    Hold between = of(waits);
                    assertTrue(proxy.hasCut());
                    server.awaitWaiters(key, 1);
                    comesBack(hold, gives, between);
                    hold.release();
                    server.awaitFree(key);
                }
            }
        }
    }

    /** By the next connection a job's request waits for the release: the server would take it for what is to end. */
    @Test
    void aReleaseThatTheNextConnectionIsRefused() throws Exception {
        Hold hold = locks.acquire(plain(15).job(locks.job()));
        var waits = wantedBy(hold, Request.of(key));
        server.say("ACL SETUSER default -rlock.release");
        try {
            proxy.cutAt("RLOCK.RELEASE", false);
            var gives = gives(hold);
            awaitAsked("\nRLOCK.RELEASE(?=\n)", 2);
            Thread.sleep(300);
            assertEquals(2, proxy.said(ASKED)); // the one that was cut off is the second
            assertFalse(gives.isDone() || waits.isDone());
            server.say("ACL SETUSER default +rlock.release");
            Hold between = of(waits);
            comesBack(hold, gives, between);
            hold.release();
        } finally {
            server.say("ACL SETUSER default +rlock.release");
        }
    }

    @Test
    void thereIsNoConnectionAnyMore() throws Exception {
        RedisClient client = Server.client(proxy.port);
        try (var own = Locks.over(client, Duration.ofSeconds(5))) {
            Hold hold = own.acquire(plain(60));
            var waits = wantedBy(hold, Request.of(key));
            proxy.refuse(true);
            proxy.cut();
            assertThrows(ConnectionException.class, () -> hold.giveWay(SHORT, NONE));
            isOver(hold, "released");
            proxy.refuse(false); // and what is left to say is said
            has(waits);
            server.awaitFree(key);
        } finally {
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    @Test
    void itIsReleasedMeanwhile() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var waits = wantedBy(hold, Request.of(key));
        var gives = gives(hold);
        Hold between = of(waits);
        server.awaitWaiters(key, 1);
        hold.release();
        assertEquals("released", assertInstanceOf(LostException.class, failure(gives)).reason());
        isOver(hold, "released");
        server.awaitWaiters(key, 0);
        assertFalse(between.isLost());
        between.release();
        server.awaitFree(key);
    }

    /** It was granted, and nobody has read that. */
    @Test
    void itIsReleasedWhileTheGrantIsOnItsWay() throws Exception {
        for (boolean ofAJob : new boolean[] {false, true}) {
            Hold hold = locks.acquire(ofAJob ? Request.of(key).job(locks.job()) : Request.of(key));
            var waits = wantedBy(hold, Request.of(key));
            var gives = gives(hold);
            Hold between = of(waits);
            server.awaitWaiters(key, 1);
            proxy.hold(true);
            between.release();
            server.awaitWaiters(key, 0);
            var released = hold.releaseAsync();
            proxy.hold(false);
            released.get(20, TimeUnit.SECONDS);
            assertInstanceOf(LostException.class, failure(gives));
            isOver(hold, "released");
            server.awaitFree(key);
        }
    }

    @Test
    void itsLocksAreClosedMeanwhile() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var waits = wantedBy(hold, Request.of(key));
        var gives = gives(hold);
        Hold between = of(waits);
        server.awaitWaiters(key, 1);
        locks.close();
        assertInstanceOf(ConnectionException.class, failure(gives));
        assertEquals("released", reason(hold));
        hold.release();
        server.awaitWaiters(key, 0);
        between.release();
        server.awaitFree(key);
    }

    @Test
    void aThreadThatIsInterrupted() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var waits = wantedBy(hold, Request.of(key));
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, () -> hold.giveWay(null, NONE));
        assertFalse(hold.isLost() || waits.isDone()); // nothing was done
        var thrown = new CompletableFuture<Throwable>();
        var thread = new Thread(() -> {
            try (hold) {
                hold.giveWay(null, NONE);
            } catch (Throwable error) {
                thrown.complete(error);
            }
        });
        thread.start();
        Hold between = of(waits);
        server.awaitWaiters(key, 1);
        thread.interrupt();
        var error = assertInstanceOf(InterruptedException.class, thrown.get(20, TimeUnit.SECONDS));
        assertEquals(0, error.getSuppressed().length);
        isOver(hold, "released");
        server.awaitWaiters(key, 0);
        assertFalse(between.isLost());
        between.release();
        server.awaitFree(key);
    }

    @Test
    void aFutureThatIsCompletedOtherwise() throws Exception {
        List<Consumer<CompletableFuture<Boolean>>> ways = List.of(
                gives -> gives.cancel(true),
                gives -> gives.orTimeout(50, TimeUnit.MILLISECONDS),
                gives -> gives.complete(true));
        for (var way : ways) {
            for (boolean granted : new boolean[] {false, true}) {
                Hold hold = locks.acquire(key, LONG);
                var waits = wantedBy(hold, Request.of(key));
                var gives = gives(hold);
                Hold between = of(waits);
                server.awaitWaiters(key, 1);
                proxy.hold(granted);
                if (granted) { // and nobody has read that
                    between.release();
                    server.awaitWaiters(key, 0);
                }
                way.accept(gives);
                Server.await("it is completed", gives::isDone);
                proxy.hold(false);
                isOver(hold, "released");
                server.awaitWaiters(key, 0);
                between.release();
                server.awaitFree(key);
            }
        }
    }

    @Test
    void aHoldThatIsOverDoesNotGiveWay() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        Hold forced = locks.acquire(key + ":forced", LONG);
        hold.release();
        server.say("RLOCK.FORCE " + key + ":forced");
        assertEquals("forced", reason(forced));
        assertEquals("released", assertThrows(LostException.class, hold::giveWay).reason());
        assertEquals("forced", assertThrows(LostException.class, forced::giveWay).reason());
        assertInstanceOf(LostException.class, failure(gives(forced)));
        assertThrows(LostException.class, forced::release);
    }

    @Test
    void nobodyIsWantedByAnOlderModule() throws Exception {
        proxy.unknown("WANTED", "WANTEB");
        Hold hold = locks.acquire(Request.of(key).lease(Duration.ofMinutes(1)));
        var waits = waits(Request.of(key));
        for (int i = 0; i < 5; i++) {
            assertFalse(hold.giveWay(null, NONE));
            isRead(locks);
        }
        assertFalse(hold.isLost() || waits.isDone());
        hold.release();
        has(waits);
    }

    /** One that came by the next connection is asked without the word. */
    @Test
    void anOlderModuleMeanwhile() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var waits = wantedBy(hold, Request.of(key));
        var gives = gives(hold);
        Hold between = of(waits);
        server.awaitWaiters(key, 1);
        proxy.unknown("WANTED", "WANTEB");
        proxy.cut();
        awaitAsked("\nWANTEB\n", 1);
        server.awaitWaiters(key, 1);
        comesBack(hold, gives, between);
        assertFalse(hold.isWanted());
        assertEquals(1, proxy.said("\nWANTEB\n"));
        hold.release();
        server.awaitFree(key);
    }

    @Test
    void norWithoutTheModule() throws Exception {
        try (var bare = Server.plain(); var through = LocksTest.through(bare.port)) {
            Hold hold = through.locks().acquire(key, LONG);
            var waits = through.locks().acquireAsync(Request.of(key).waitingForEver());
            for (int i = 0; i < 20; i++) {
                assertFalse(hold.giveWay(null, NONE));
            }
            assertFalse(waits.isDone());
            hold.release();
            has(waits);
        }
    }
}

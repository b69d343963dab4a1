package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** A hold gives way to whoever waits, and is a hold again. */
class GiveWayTest extends WithWay {
    @Test
    void notIfNobodyWaits() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        long token = hold.token();
        assertFalse(hold.giveWay(null, NONE));
        isRead(locks);
        int said = said(); // it asks to know, once
        for (int i = 0; i < 50; i++) {
            assertFalse(hold.giveWay(null, NONE));
            assertFalse(hold.giveWayAsync(LONG, NONE).get(20, TimeUnit.SECONDS));
        }
        assertEquals(said, said());
        assertEquals(1, proxy.said(WANTED));
        assertEquals(token, hold.token());
        hold.release();
    }

    @Test
    void notIfItIsTooYoung() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var waits = wantedBy(hold, Request.of(key));
        int said = said();
        for (Duration least : List.of(LONG, Duration.ofDays(1_000_000))) {
            assertFalse(hold.giveWay(null, least));
        }
        isRead(locks);
        assertEquals(said + 2, said());
        assertFalse(waits.isDone());
        hold.release();
        has(waits);
    }

    @Test
    void howOldItIsIsCountedFromTheGrant() throws Exception {
        var least = Duration.ofMillis(500);
        long began = System.nanoTime();
        Hold hold = locks.acquire(key, LONG);
        var waits = wantedBy(hold, Request.of(key));
        CompletableFuture<Boolean> gives;
        do {
            gives = hold.giveWayAsync(null, least);
        } while (gives.isDone() && !end(gives));
        assertTrue(System.nanoTime() - began >= least.toNanos());
        has(waits);
        assertTrue(end(gives));
        waits = wantedBy(hold, Request.of(key));
        assertFalse(hold.giveWay(null, LONG));
        hold.release();
        has(waits);
    }

    @Test
    void notWhileItIsToBeHeldAtLeast() throws Exception {
        Hold hold = locks.acquire(plain(60));
        hold.atLeast(LONG);
        var waits = wantedBy(hold, Request.of(key));
        assertFalse(hold.giveWay(null, NONE));
        hold.atLeast(Duration.ZERO);
        var gives = gives(hold);
        has(waits);
        assertTrue(end(gives));
        hold.release();
    }

    @Test
    void whoWaitsIsServedInBetween() throws Exception {
        Request plain = Request.of(key);
        Request permits = Request.of(key + ":gpu").limit(2).permits(2);
        Request rw = Request.of(key + ":rw").lease(Duration.ofMinutes(1));
        var requests = List.of(plain, plain(60), plain.lease(Duration.ofSeconds(6)), permits, rw.read(), rw.write());
        var others = List.of(plain, plain, plain, permits, rw.write(), rw.read());
        for (int i = 0; i < requests.size(); i++) {
            Hold hold = locks.acquire(requests.get(i));
            long token = hold.token();
            String owner = hold.owner();
            var waits = wantedBy(hold, others.get(i));
            var gives = gives(hold);
            Hold between = of(waits);
            assertTrue(between.token() > token);
            server.awaitWaiters(hold.key(), 1);
            assertFalse(gives.isDone());
            comesBack(hold, gives, between);
            assertNotEquals(owner, hold.owner());
            assertFalse(hold.isLost());
            hold.renew(LONG);
            hold.release();
            server.awaitFree(hold.key());
        }
    }

    @Test
    void bothCommandsGoOutInOneWrite() throws Exception {
        Job job = locks.job();
        for (Request request : List.of(Request.of(key), Request.of(key + ":job").job(job))) {
            Hold hold = locks.acquire(request);
            for (int i = 0; i < 20; i++) {
                givesWay(hold);
            }
            hold.release();
        }
        assertEquals(40, proxy.saidAtOnce("RLOCK.RELEASE", "RLOCK.ACQUIRE"));
        assertEquals(42, proxy.said("\nRLOCK.RELEASE(?=\n)"));
        assertEquals(40 + 2, proxy.said(WANTED));
    }

    @Test
    void inTheOrderOfTheQueue() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var tokens = new ArrayList<Long>();
        for (int i = 1; i <= 5; i++) {
            others.locks().acquireAsync(Request.of(key).waitingForEver()).thenAccept(other -> {
                tokens.add(other.token());
                other.release();
            });
            server.awaitWaiters(key, i);
        }
        awaitWanted(hold, true);
        assertTrue(hold.giveWay(null, NONE));
        assertEquals(5, tokens.size());
        assertTrue(tokens.stream().allMatch(token -> token < hold.token()));
        assertFalse(hold.giveWay(null, NONE));
        hold.release();
    }

    /** Each gives way to the other. */
    @Test
    void twoThatAlternate() throws Exception {
        var turns = List.of(new AtomicInteger(), new AtomicInteger());
        var inside = new AtomicInteger();
        var all = new ArrayList<CompletableFuture<Void>>();
        for (int i = 0; i < 2; i++) {
            var mine = turns.get(i);
            Locks by = i == 0 ? locks : others.locks();
            var done = new CompletableFuture<Void>();
            all.add(done);
            new Thread(() -> {
                try (Hold hold = by.acquire(key, LONG)) {
                    for (long token = 0; turns.stream().anyMatch(one -> one.get() < 50); ) {
                        assertEquals(1, inside.incrementAndGet());
                        assertTrue(hold.token() >= token);
                        token = hold.token();
                        inside.decrementAndGet();
                        if (hold.giveWay(LONG, Duration.ofMillis(1))) {
                            mine.incrementAndGet();
                        }
                    }
                    done.complete(null);
                } catch (Throwable error) {
                    done.completeExceptionally(error);
                }
            }).start();
        }
        for (var one : all) {
            one.get(120, TimeUnit.SECONDS);
        }
    }

    @Test
    void aLeaseThatWasRenewed() throws Exception {
        Hold hold = locks.acquire(plain(15));
        hold.renew(Duration.ofMinutes(1));
        givesWay(hold);
        assertTrue((Long) server.say("PTTL " + key) > 30_000);
        hold.release();
    }

    @Test
    void itsMaxIsCountedAnew() throws Exception {
        Hold hold = locks.acquire(Request.of(key).max(Duration.ofSeconds(10)));
        Thread.sleep(5_000);
        givesWay(hold);
        long again = System.nanoTime();
        assertEquals("max", reason(hold));
        assertTrue(System.nanoTime() - again > Duration.ofSeconds(5).toNanos());
        assertThrows(LostException.class, hold::release);
    }

    /** By whoever waits behind it; what was said before is not counted. */
    @Test
    void itIsWantedAgain() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var first = wantedBy(hold, Request.of(key));
        var gives = gives(hold);
        Hold between = of(first);
        server.awaitWaiters(key, 1);
        var second = others.locks().acquireAsync(Request.of(key).waitingForEver());
        server.awaitWaiters(key, 2);
        int renewed = proxy.said("\nRLOCK.RENEW\n");
        between.release();
        assertTrue(end(gives));
        assertTrue(end(hold.wanted()));
        assertEquals(renewed, proxy.said("\nRLOCK.RENEW\n")); // the request itself has asked
        gives = gives(hold);
        has(second);
        assertTrue(end(gives));
        assertFalse(hold.isWanted());
        hold.release();
    }

    @Test
    void whoeverWantsToKnowOfItsLoss() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var before = hold.lost().toCompletableFuture();
        var called = new CompletableFuture<String>();
        hold.lost().thenAccept(lost -> called.complete(lost.reason()));
        var waits = wantedBy(hold, Request.of(key));
        var gives = gives(hold);
        Hold between = of(waits);
        server.awaitWaiters(key, 1);
        var meanwhile = hold.lost().toCompletableFuture();
        between.release();
        assertTrue(end(gives));
        isRead(locks);
        assertFalse(before.isDone() || meanwhile.isDone() || hold.isLost());
        server.say("RLOCK.FORCE " + key);
        for (var one : List.of(before, meanwhile)) {
            assertEquals("forced", one.get(20, TimeUnit.SECONDS).reason());
        }
        assertEquals("forced", called.get(20, TimeUnit.SECONDS));
        assertThrows(LostException.class, hold::release);
    }

    @Test
    void otherLocksOfItsJobStay() throws Exception {
        Job job = locks.job();
        Hold other = locks.acquire(Request.of(key + ":other").job(job));
        Hold hold = locks.acquire(Request.of(key).job(job));
        for (int i = 0; i < 5; i++) {
            var waits = wantedBy(hold, Request.of(key));
            var gives = gives(hold);
            Hold between = of(waits);
            server.awaitWaiters(key, 1);
            assertFalse(server.isFree(key + ":other"));
            assertThrows(HeldByJobException.class, () -> locks.acquire(Request.of(key).job(job)));
            between.release();
            assertTrue(end(gives));
            assertEquals(job.owner(), hold.owner());
        }
        assertFalse(other.isLost());
        hold.release();
        server.awaitFree(key);
        locks.acquire(Request.of(key).job(job).waiting(LONG)).release();
        other.release();
    }

    @Test
    void inBetweenItIsOverForAll() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var waits = wantedBy(hold, Request.of(key));
        var gives = gives(hold);
        Hold between = of(waits);
        server.awaitWaiters(key, 1);
        assertFalse(hold.isWanted());
        assertFalse(end(hold.wanted()));
        assertThrows(IllegalStateException.class, () -> hold.renew(LONG));
        assertThrows(IllegalStateException.class, hold::again);
        assertThrows(LostException.class, hold::giveWay);
        between.release();
        assertTrue(end(gives));
        hold.again().release();
        hold.release();
        server.awaitFree(key);
    }

    @Test
    void aHoldOfAThread() throws Exception {
        ThreadLock lock = locks.lock(key);
        lock.lock();
        Hold hold = lock.hold().orElseThrow();
        lock.lock();
        var waits = wantedBy(hold, Request.of(key));
        assertThrows(IllegalStateException.class, () -> hold.giveWay(null, NONE));
        lock.unlock();
        var gives = gives(hold);
        has(waits);
        assertTrue(end(gives));
        assertTrue(lock.isHeldAndNotLost());
        wantedBy(hold, Request.of(key));
        assertThrows(NotAcquiredException.class, () -> hold.giveWay(Duration.ofMillis(200), NONE));
        assertFalse(lock.isHeldAndNotLost());
        lock.unlock(); // raises nothing more
    }

    /** To release one of the two would let nobody in. */
    @Test
    void notWhatItsThreadReadsAndWrites() throws Exception {
        var both = locks.readWriteLock(key);
        both.writeLock().lock();
        both.readLock().lock();
        var reads = others.locks().acquireAsync(Request.of(key).read().waitingForEver());
        server.awaitWaiters(key, 1);
        int said = said();
        for (ThreadLock lock : List.of(both.writeLock(), both.readLock())) {
            assertThrows(IllegalStateException.class, () -> lock.hold().orElseThrow().giveWay(null, NONE));
        }
        assertEquals(said, said());
        both.readLock().unlock();
        Hold hold = both.writeLock().hold().orElseThrow();
        assertTrue(end(hold.wanted()));
        var gives = gives(hold);
        has(reads);
        assertTrue(end(gives));
        both.writeLock().unlock();
    }

    @Test
    void notWhatIsHeldMoreThanOnceOrOfSeveralKeys() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        Hold again = hold.again();
        Hold several = locks.acquire(Request.of(key + ":1", key + ":2"));
        var waits = wantedBy(hold, Request.of(key));
        int said = said();
        for (Hold one : List.of(hold, again, several)) {
            assertThrows(IllegalStateException.class, () -> one.giveWay(null, NONE));
            assertInstanceOf(IllegalStateException.class, failure(gives(one)));
        }
        assertEquals(said, said());
        hold.release();
        var gives = gives(again);
        has(waits);
        assertTrue(end(gives));
        again.release();
        several.release();
    }

    @Test
    void badTimesAreRefusedAtOnce() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var negative = Duration.ofMillis(-1);
        assertThrows(IllegalArgumentException.class, () -> hold.giveWay(negative));
        assertThrows(IllegalArgumentException.class, () -> hold.giveWay(null, negative));
        assertThrows(IllegalArgumentException.class, () -> hold.giveWayAsync(negative, NONE));
        hold.release();
    }

    /** It may acquire and join there. */
    @Test
    void fromACallback() throws Exception {
        Hold lost = locks.acquire(key + ":lost", LONG);
        Hold hold = locks.acquire(key, LONG);
        var waits = wantedBy(hold, Request.of(key));
        var gave = lost.lost().thenApply(why -> {
            try {
                return hold.giveWay(null, NONE);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }).toCompletableFuture();
        server.say("RLOCK.FORCE " + key + ":lost");
        has(waits);
        assertTrue(end(gave));
        hold.release();
    }

    /** The grant is on its way to the future then: the hold is over before the program goes on. */
    @Test
    void aFutureThatIsCancelledAsItIsGranted() throws Exception {
        for (int n = 0; n < 40; n++) {
            Hold hold = locks.acquire(key, LONG);
            long token = hold.token();
            var waits = wantedBy(hold, Request.of(key));
            var gives = hold.giveWayAsync(null, NONE);
            of(waits).releaseAsync();
            while (hold.token() == token && !gives.isDone()) {
                Thread.onSpinWait();
            }
            assertTrue(gives.cancel(false) == hold.isLost());
            hold.close();
        }
        server.awaitFree(key);
    }
}

package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A program knows that somebody waits for what it holds, once it has asked. */
class WantedTest extends WithOthers {
    @Test
    void whenSomebodyBeginsToWait() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        assertFalse(hold.isWanted());
        var wanted = hold.wanted();
        isRead(locks);
        assertFalse(hold.isWanted());
        assertFalse(wanted.isDone());
        var waits = waits(Request.of(key));
        assertTrue(end(wanted));
        awaitWanted(hold, true);
        assertTrue(end(hold.wanted()));
        hold.release();
        assertFalse(hold.isWanted());
        assertFalse(end(hold.wanted()));
        assertEquals(1, proxy.said(WANTED));
        has(waits);
    }

    @Test
    void atItsFirstUseIfSomebodyWaitsAlready() throws Exception {
        for (Request request : List.of(Request.of(key), Request.of(key + ":rw").write(), Request.of(key + ":gpu").limit(1))) {
            Hold hold = locks.acquire(request);
            var waits = waits(request);
            assertTrue(end(hold.wanted()));
            hold.release();
            has(waits);
        }
    }

    @Test
    void notByWhoOnlyTries() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var wanted = hold.wanted();
        for (int i = 0; i < 5; i++) {
            assertTrue(others.locks().tryAcquire(key).isEmpty());
            isRead(locks);
        }
        assertFalse(hold.isWanted());
        assertFalse(wanted.isDone());
        hold.release();
    }

    @Test
    void asLongAsSomebodyWaitsAndNoLonger() throws Exception {
        Hold hold = locks.acquire(Request.of(key).lease(Duration.ofSeconds(6)));
        var waits = waits(Request.of(key));
        assertTrue(end(hold.wanted()));
        Thread.sleep(8_000); // it was said long ago for the first time
        awaitWanted(hold, true);
        waits.cancel(true);
        server.awaitWaiters(key, 0);
        awaitWanted(hold, false);
        isRead(locks);
        assertFalse(hold.isWanted());
        hold.release();
    }

    @Test
    void readersByWhoWritesAndNotByEachOther() throws Exception {
        Request read = Request.of(key).read();
        Hold hold = locks.acquire(read);
        var wanted = hold.wanted();
        Hold beside = others.locks().acquire(read);
        isRead(locks);
        assertFalse(hold.isWanted());
        assertFalse(wanted.isDone());
        try (var third = LocksTest.through(server.port)) {
            var writes = third.locks().acquireAsync(Request.of(key).write().waitingForEver());
            assertTrue(end(wanted));
            assertTrue(end(beside.wanted()));
            hold.release();
            beside.release();
            Hold writer = writes.get(20, TimeUnit.SECONDS);
            var reads = waits(read);
            assertTrue(end(writer.wanted()));
            writer.release();
            has(reads);
        }
    }

    @Test
    void aDeadlineStays() throws Exception {
        Hold hold = locks.acquire(plain(20));
        long before = (Long) server.say("PEXPIRETIME " + key);
        Thread.sleep(4_000); // so that a lease that began anew would be seen
        var waits = waits(Request.of(key));
        assertTrue(end(hold.wanted()));
        long after = (Long) server.say("PEXPIRETIME " + key);
        assertTrue(after - before < 3_000, before + " " + after);
        has(waits); // when it is over
        assertTrue(List.of("expired", "lease").contains(reason(hold)));
        assertFalse(hold.isWanted());
    }

    @Test
    void whatIsGoneIsLost() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        proxy.hold(true);
        server.say("RLOCK.FORCE " + key);
        var wanted = hold.wanted();
        awaitAsked(WANTED, 1);
        proxy.hold(false);
        assertFalse(end(wanted));
        assertEquals("forced", reason(hold));
        assertThrows(LostException.class, hold::release);
    }

    @Test
    void itIsOverWithTheHold() throws Exception {
        for (boolean forced : new boolean[] {true, false}) {
            Hold hold = locks.acquire(key, LONG);
            Hold again = hold.again();
            var wanted = hold.wanted();
            again.release();
            assertFalse(again.isWanted());
            isRead(locks);
            assertFalse(wanted.isDone());
            if (forced) {
                server.say("RLOCK.FORCE " + key);
                assertEquals("forced", reason(hold));
            } else {
                hold.release();
            }
            assertFalse(end(wanted));
            assertFalse(hold.isWanted());
            assertFalse(end(hold.wanted()));
        }
    }

    @Test
    void whatIsSaidBehindTheReleaseIsNothing() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var wanted = hold.wanted();
        isRead(locks);
        proxy.hold(true);
        var waits = waits(Request.of(key));
        var released = hold.releaseAsync();
        assertFalse(end(wanted));
        proxy.hold(false);
        released.get(20, TimeUnit.SECONDS);
        has(waits);
        isRead(locks);
        assertFalse(hold.isWanted());
        try (Hold next = locks.acquire(key, LONG)) {
            assertFalse(next.isWanted());
        }
    }

    @Test
    void aFirstUseComesFromAnywhereAndIsOne() throws Exception {
        var lost = locks.acquire(key + ":lost", LONG);
        Hold hold = locks.acquireAsync(Request.of(key)).get(20, TimeUnit.SECONDS);
        var inCallback = new CompletableFuture<CompletableFuture<Boolean>>();
        lost.lost().thenAccept(why -> inCallback.complete(hold.wanted()));
        var all = new ArrayList<CompletableFuture<Boolean>>();
        var begin = new CountDownLatch(1);
        for (int i = 0; i < 20; i++) {
            all.add(CompletableFuture.supplyAsync(() -> {
                awaitUnchecked(begin);
                return hold.wanted();
            }, task -> new Thread(task).start()).thenCompose(wanted -> wanted));
        }
        server.say("RLOCK.FORCE " + key + ":lost");
        begin.countDown();
        all.add(inCallback.get(20, TimeUnit.SECONDS));
        all.add(hold.again().wanted());
        var cancelled = hold.wanted();
        cancelled.cancel(true);
        var waits = waits(Request.of(key));
        for (var one : all) {
            assertTrue(end(one));
        }
        assertEquals(1, proxy.said(WANTED));
        locks.close();
        has(waits);
    }

    private static void awaitUnchecked(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /** It may acquire and join there. */
    @Test
    void whatDependsOnItMayBlock() throws Exception {
        Hold hold = locks.acquire(key, LONG);
        var done = hold.wanted().thenApply(wanted -> {
            hold.release();
            return locks.acquireAsync(Request.of(key).waitingForEver()).join();
        });
        var waits = waits(Request.of(key));
        has(waits);
        done.get(20, TimeUnit.SECONDS).release();
    }

    @Test
    void whoNeverUsesItSaysNothing() throws Exception {
        locks.acquire(key, LONG).release();
        assertEquals(0, proxy.said(WANTED));
    }

    @Test
    void severalKeysAreNeverWanted() throws Exception {
        Hold hold = locks.acquire(Request.of(key, key + ":2"));
        var wanted = hold.wanted();
        var waits = waits(Request.of(key));
        isRead(locks);
        assertFalse(hold.isWanted());
        assertFalse(wanted.isDone());
        assertEquals(0, proxy.said(WANTED));
        hold.release();
        assertFalse(end(wanted));
        has(waits);
    }
}

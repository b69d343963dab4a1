package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class LocksTest extends WithServer {
    @Test
    void acquiresAndReleases() throws Exception {
        long first;
        try (Hold hold = locks.acquire(key, LONG)) {
            first = hold.token();
            assertEquals(key, hold.key());
            assertFalse(hold.isLost());
            assertEquals(1, server.holders(key));
        }
        assertTrue(server.isFree(key));
        try (Hold hold = locks.acquire(key, LONG)) {
            assertTrue(hold.token() > first);
        }
    }

    @Test
    void aTriedLockThatIsTakenIsNotThere() throws Exception {
        take(key);
        assertTrue(locks.tryAcquire(key).isEmpty());
        assertThrows(NotAcquiredException.class, () -> locks.acquire(key, Duration.ZERO));
        assertThrows(NotAcquiredException.class, () -> locks.acquire(key, Duration.ofMillis(50)));
        assertEquals(0, server.waiters(key));
        give(key);
        assertTrue(locks.tryAcquire(key).isPresent());
    }

    @Test
    void servesInOrder() throws Exception {
        take(key);
        var order = new ArrayList<Integer>();
        var ends = new ArrayList<CompletableFuture<Void>>();
        for (int i = 0; i < 5; i++) {
            int number = i;
            ends.add(locks.acquireAsync(Request.of(key).waitingForEver()).thenAccept(hold -> {
                order.add(number);
                hold.release();
            }));
            server.awaitWaiters(key, i + 1);
        }
        give(key);
        CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new)).get(20, TimeUnit.SECONDS);
        assertEquals(java.util.List.of(0, 1, 2, 3, 4), order);
    }

    @Test
    void cancellingAFutureReachesTheServer() throws Exception {
        take(key);
        var future = locks.acquireAsync(Request.of(key).waitingForEver());
        server.awaitWaiters(key, 1);
        future.cancel(true);
        server.awaitWaiters(key, 0);
        var timed = locks.acquireAsync(Request.of(key).waitingForEver()).orTimeout(50, TimeUnit.MILLISECONDS);
        assertThrows(ExecutionException.class, timed::get);
        server.awaitWaiters(key, 0);
    }

    @Test
    void interruptingAThreadReachesTheServer() throws Exception {
        interruptedWhileItWaits(() -> locks.acquire(key, LONG));
    }

    @Test
    void aGrantThatCrossesTheCancellingIsReleased() throws Exception {
        try (var proxy = new Proxy(server.port); var through = through(proxy)) {
            through.locks.acquire("open " + key, LONG).release();
            take(key);
            var future = through.locks.acquireAsync(Request.of(key).waitingForEver());
            server.awaitWaiters(key, 1);
            proxy.hold(true);
            give(key);
            Server.await("the grant", () -> server.holders(key) == 1);
            future.cancel(true);
            assertThrows(CancellationException.class, future::join);
            proxy.hold(false);
            server.awaitFree(key);
        }
    }

    @Test
    void aJobThatGaveUpMayAskAgain() throws Exception {
        try (var proxy = new Proxy(server.port); var through = through(proxy)) {
            through.locks.acquire("open " + key, LONG).release();
            var job = through.locks.job();
            take(key);
            var future = through.locks.acquireAsync(Request.of(key).waitingForEver().job(job));
            server.awaitWaiters(key, 1);
            proxy.hold(true);
            give(key);
            Server.await("the grant", () -> server.holders(key) == 1);
            future.cancel(true);
            // Its grant is still on its way, and is not to be taken for that of this one.
            var again = through.locks.acquireAsync(Request.of(key).waiting(LONG).job(job));
            proxy.hold(false);
            Hold hold = again.get(20, TimeUnit.SECONDS);
            assertEquals(1, server.holders(key));
            assertFalse(hold.isLost());
            hold.release();
            assertTrue(server.isFree(key));
        }
    }

    @Test
    void severalKeysAreAllOrNone() throws Exception {
        String a = key + ":a";
        String b = key + ":b";
        take(b);
        assertTrue(locks.tryAcquire(Request.of(a, b)).isEmpty());
        assertTrue(server.isFree(a));
        give(b);
        try (Hold hold = locks.acquire(Request.of(a, b))) {
            assertEquals(java.util.List.of(a, b), hold.keys());
            assertFalse(server.isFree(a) || server.isFree(b));
        }
        assertTrue(server.isFree(a) && server.isFree(b));
    }

    @Test
    void readersShareAndWritersDoNot() throws Exception {
        try (Hold one = locks.acquire(Request.of(key).read()); Hold two = locks.acquire(Request.of(key).read())) {
            assertEquals(2, server.holders(key));
            assertTrue(locks.tryAcquire(Request.of(key).write()).isEmpty());
            assertFalse(one.isLost() || two.isLost());
        }
        try (Hold writer = locks.acquire(Request.of(key).write())) {
            assertTrue(locks.tryAcquire(Request.of(key).read()).isEmpty());
            assertFalse(writer.isLost());
        }
    }

    @Test
    void permitsAreCounted() throws Exception {
        var request = Request.of(key).limit(3);
        try (Hold two = locks.acquire(request.permits(2)); Hold one = locks.acquire(request)) {
            assertTrue(locks.tryAcquire(request).isEmpty());
            assertEquals("WRONGLIMIT", assertThrows(
                    RefusedException.class, () -> locks.acquire(Request.of(key).limit(4))).code());
            one.release();
            locks.acquire(request).release();
            assertFalse(two.isLost());
        }
        assertTrue(server.isFree(key));
    }

    @Test
    void aJobHasOneOwnerAndEachKeyOnce() throws Exception {
        var job = locks.job();
        var request = Request.of(key).job(job);
        try (Hold hold = locks.acquire(request); Hold other = locks.acquire(Request.of(key + ":2").job(job))) {
            assertEquals(job.owner(), hold.owner());
            assertEquals(hold.owner(), other.owner());
            assertThrows(HeldByJobException.class, () -> locks.acquire(request));
            assertTrue(locks.acquireAsync(request).isCompletedExceptionally());
            try (Hold again = hold.again()) {
                assertEquals(hold.token(), again.token());
            }
            assertFalse(server.isFree(key));
        }
        assertTrue(server.isFree(key));
        locks.acquire(request).release();
    }

    @Test
    void twoJobsThatWaitForEachOtherGetADeadlock() throws Exception {
        String a = key + ":a";
        String b = key + ":b";
        var one = locks.job();
        var two = locks.job();
        Hold first = locks.acquire(Request.of(a).job(one));
        Hold second = locks.acquire(Request.of(b).job(two));
        var waits = locks.acquireAsync(Request.of(b).waitingForEver().job(one));
        server.awaitWaiters(b, 1);
        var error = assertThrows(
                DeadlockException.class, () -> locks.acquire(Request.of(a).waitingForEver().job(two)));
        assertTrue(error.getMessage().startsWith("DEADLOCK"), error.getMessage());
        second.release();
        waits.get(20, TimeUnit.SECONDS).release();
        first.release();
    }

    @Test
    void aThousandWaitsOnOneConnection() throws Exception {
        int many = 1_000;
        var waits = new ArrayList<CompletableFuture<Hold>>();
        for (int i = 0; i < many; i++) {
            take(key + i);
            waits.add(locks.acquireAsync(Request.of(key + i).waitingForEver()));
        }
        server.awaitWaiters(key + (many - 1), 1);
        for (int i = 0; i < many; i++) {
            give(key + i);
        }
        var tokens = new HashSet<Long>();
        for (var wait : waits) {
            tokens.add(wait.get(20, TimeUnit.SECONDS).token());
        }
        assertEquals(many, tokens.size());
    }

    @Test
    void closingReleasesEverything() throws Exception {
        take(key);
        var waits = locks.acquireAsync(Request.of(key).waitingForEver());
        Hold held = locks.acquire(key + ":held", LONG);
        Hold plain = locks.acquire(Request.of(key + ":plain").watchdog(false));
        server.awaitWaiters(key, 1);
        locks.close();
        assertEquals("closed", reason(held));
        assertEquals("closed", reason(plain));
        server.awaitWaiters(key, 0);
        server.awaitFree(key + ":held");
        server.awaitFree(key + ":plain");
        assertInstanceOf(ConnectionException.class, assertThrows(ExecutionException.class, waits::get).getCause());
        assertThrows(ConnectionException.class, () -> locks.acquire(key, LONG));
    }

    @Test
    void wrongArgumentsAreNotSent() {
        assertThrows(IllegalArgumentException.class, () -> Request.of(""));
        assertThrows(IllegalArgumentException.class, () -> Request.of("a", "a"));
        assertThrows(IllegalArgumentException.class, () -> Request.of("a").lease(Duration.ZERO));
        assertThrows(IllegalArgumentException.class, () -> Request.of("a").waiting(Duration.ofMillis(-1)));
        assertThrows(IllegalArgumentException.class, () -> Request.of("a").permits(1));
        assertThrows(IllegalArgumentException.class, () -> Request.of("a").limit(2).permits(3));
        assertThrows(IllegalArgumentException.class, () -> Request.of("a").read().write());
        assertThrows(IllegalArgumentException.class, () -> Request.of("a", "b").read());
        // They would be sent as question marks, and be one name.
        for (String half : new String[] {"a\ud800", "\udc00b", "\ud800\ud800", "\udc00\ud800"}) {
            assertThrows(IllegalArgumentException.class, () -> Request.of(half));
            assertThrows(IllegalArgumentException.class, () -> Request.of("a", half));
        }
        assertEquals("a\ud83d\ude00", Request.of("a\ud83d\ude00").key());
        assertThrows(NullPointerException.class, () -> Request.of((String) null));
        assertThrows(NullPointerException.class, () -> Request.of("a", (String) null));
    }

    @Test
    void notAcquiredHasTheKeyAndWhoHasItWhenItIsOneOfOurs() throws Exception {
        take(key);
        var error = assertThrows(NotAcquiredException.class, () -> locks.acquire(key, Duration.ofMillis(20)));
        assertEquals(key, error.key());
        assertTrue(error.heldBy().isEmpty());
        give(key);
        for (var request : java.util.List.of(Request.of(key), Request.of(key).watchdog(false), Request.of(key, key + 2))) {
            try (Hold hold = locks.acquire(request)) {
                for (var other : java.util.List.of(Request.of(key), Request.of("free " + key, key))) {
                    var own = assertThrows(NotAcquiredException.class, () -> locks.acquire(other));
                    assertEquals(hold.owner(), own.heldBy().orElseThrow());
                    assertTrue(own.getMessage().contains(hold.owner()), own.getMessage());
                }
            }
        }
        take(key);
        assertTrue(assertThrows(NotAcquiredException.class, () -> locks.acquire(key, Duration.ZERO)).heldBy().isEmpty());
    }

    @Test
    void whatTheServerRefusesIsThrown() {
        server.say("SET " + key + " 1");
        assertEquals("WRONGTYPE", assertThrows(RefusedException.class, () -> locks.acquire(key, LONG)).code());
    }

    record Through(io.lettuce.core.RedisClient client, Locks locks) implements AutoCloseable {
        @Override
        public void close() {
            locks.close();
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    static Through through(Proxy proxy) {
        return through(proxy.port);
    }

    static Through through(int port) {
        var client = Server.client(port);
        return new Through(client, Locks.over(client));
    }
}

package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.RedisClient;
import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What the program does in its callbacks, its finalisers and Lettuce's callbacks stops nobody. */
class CallbackTest extends WithServer {
    /** More than any pool has threads, and than the common pool puts in the place of those that wait. */
    private static final int MANY = 400;

    @AfterEach
    void nothingIsLeftAndANewKeyIsToBeHad() throws Exception {
        try (var others = LocksTest.through(server.port)) {
            others.locks().acquire(key + ":new", LONG).release();
        }
        server.awaitNothingLeft();
    }

    interface Act {
        void run(String key, Hold hold) throws Exception;
    }

    /** So many callbacks at a time: each begins when all have begun, and none ends before. */
    private void atATime(Act act) throws Exception {
        var begun = new CountDownLatch(MANY);
        var ends = new ArrayList<CompletableFuture<Void>>();
        for (int i = 0; i < MANY; i++) {
            String name = key + i;
            ends.add(locks.acquireAsync(Request.of(name)).thenAccept(hold -> {
                begun.countDown();
                try {
                    assertTrue(begun.await(30, TimeUnit.SECONDS), "the others have not begun");
                    act.run(name, hold);
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            }));
        }
        CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new)).get(45, TimeUnit.SECONDS);
        locks.acquire(key + ":free", LONG).release();
    }

    @Test
    void callbacksThatJoinWhatTheyAskFor() throws Exception {
        atATime((name, hold) -> {
            Hold inner = locks.acquireAsync(Request.of(name + ":inner").waiting(LONG)).join();
            hold.renewAsync(LONG).join();
            inner.renewAsync(LONG).thenCompose(nothing -> inner.releaseAsync()).join();
            hold.releaseAsync().join();
        });
    }

    @Test
    void callbacksThatBlock() throws Exception {
        atATime((name, hold) -> {
            try (Hold inner = locks.acquire(name + ":inner", LONG)) {
                hold.renew(LONG);
                inner.renew(LONG);
            }
            var lock = locks.lock(name + ":lock");
            lock.lock();
            lock.unlock();
            hold.release();
        });
    }

    @Test
    void callbacksOfLossesThatDoTheSame() throws Exception {
        var begun = new CountDownLatch(MANY);
        var other = locks.acquire(key + ":other", LONG);
        var ends = new ArrayList<CompletableFuture<Void>>();
        for (int i = 0; i < MANY; i++) {
            String name = key + i;
            Hold hold = locks.acquire(name, LONG);
            ends.add(hold.lost().thenAccept(lost -> {
                begun.countDown();
                try {
                    assertTrue(begun.await(30, TimeUnit.SECONDS), "the others have not begun");
                    other.renew(LONG);
                    locks.acquireAsync(Request.of(name).waiting(LONG)).join().releaseAsync().join();
                    locks.acquire(name, LONG).release();
                } catch (InterruptedException error) {
                    throw new IllegalStateException(error);
                }
            }).toCompletableFuture());
            server.say("RLOCK.FORCE " + name);
        }
        CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new)).get(45, TimeUnit.SECONDS);
        other.release();
    }

    @Test
    void aCallbackThatInterruptsItsThreadAndOneThatThrows() throws Exception {
        for (int i = 0; i < 50; i++) {
            int number = i;
            Hold hold = locks.acquire(key + i, LONG);
            var noticed = hold.lost().thenAccept(lost -> {
                Thread.currentThread().interrupt();
                if (number % 2 == 0) {
                    throw new AssertionError("the program's own");
                }
            }).toCompletableFuture();
            server.say("RLOCK.FORCE " + key + i);
            noticed.handle((nothing, error) -> true).get(20, TimeUnit.SECONDS);
            var blocks = locks.acquireAsync(Request.of(key + i)).thenAccept(next -> {
                try {
                    locks.acquire(key, LONG).release(); // it is another callback's interrupt
                    next.release();
                } catch (InterruptedException error) {
                    throw new IllegalStateException(error);
                }
            });
            blocks.get(20, TimeUnit.SECONDS);
        }
    }

    @Test
    void aCallbackThatCloses() throws Exception {
        var closed = locks.acquireAsync(Request.of(key)).thenAccept(hold -> locks.close());
        closed.get(20, TimeUnit.SECONDS);
        server.awaitFree(key);
        try (var others = LocksTest.through(server.port)) {
            Hold hold = others.locks().acquire(key, LONG);
            var lost = hold.lost().thenAccept(one -> others.locks().close()).toCompletableFuture();
            server.say("RLOCK.FORCE " + key);
            lost.get(20, TimeUnit.SECONDS);
        }
    }

    @Test
    void aCleanerThatReleases() throws Exception {
        var cleaner = Cleaner.create();
        for (int i = 0; i < 100; i++) {
            Hold hold = locks.acquire(key + i, LONG);
            cleaner.register(new Object(), hold::release);
        }
        Server.await("all are cleaned", () -> {
            System.gc();
            locks.acquire(key, LONG).release();
            return server.isFree(key + 0) && server.isFree(key + 99) && server.isFree(key + 50);
        });
    }

    /** The thread of the program's own connection, which it stops. */
    @Test
    void aCallbackOfLettuceThatBlocks() throws Exception {
        RedisClient client = Server.client(server.port);
        try (var locks = Locks.over(client); var theirs = client.connect()) {
            locks.acquire("first", LONG).release();
            var ends = new ArrayList<CompletableFuture<?>>();
            for (int i = 0; i < 8; i++) { // of each of its threads, as likely as not
                String name = key + i;
                var connection = client.connect();
                ends.add(connection.async().ping().thenAccept(pong -> {
                    try {
                        Hold hold = locks.acquire(name, LONG);
                        hold.renew(LONG);
                        hold.release();
                        var lock = locks.lock(name);
                        lock.lock();
                        lock.unlock();
                        locks.acquireAsync(Request.of(name)).thenCompose(Hold::releaseAsync).join();
                    } catch (InterruptedException error) {
                        throw new IllegalStateException(error);
                    }
                }).toCompletableFuture());
            }
            CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new)).get(30, TimeUnit.SECONDS);
        } finally {
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    @Test
    void whateverCompletesTheFutureCallsTheRequestOff() throws Exception {
        take(key);
        List<BiConsumer<CompletableFuture<Hold>, Hold>> ways = List.of(
                (future, other) -> future.complete(null),
                (future, other) -> future.complete(other),
                (future, other) -> future.cancel(true),
                (future, other) -> future.completeExceptionally(new TimeoutException()),
                (future, other) -> future.completeAsync(() -> other),
                (future, other) -> future.orTimeout(20, TimeUnit.MILLISECONDS),
                (future, other) -> future.completeOnTimeout(other, 20, TimeUnit.MILLISECONDS));
        Hold other = locks.acquire(key + ":other", LONG);
        for (var way : ways) {
            var future = locks.acquireAsync(Request.of(key).waitingForEver());
            server.awaitWaiters(key, 1);
            way.accept(future, other);
            server.awaitWaiters(key, 0);
        }
        give(key);
        // At the time of the grant: it is the program's, or nobody's.
        for (int i = 0; i < 200; i++) {
            var future = locks.acquireAsync(Request.of(key).waiting(LONG));
            ways.get(i % 5).accept(future, other);
            Hold got = future.handle((hold, error) -> hold).get(20, TimeUnit.SECONDS);
            if (got != null && got != other) {
                got.release();
            }
        }
        locks.acquire(key, Duration.ofSeconds(20)).release();
        assertEquals(1, server.holders(key + ":other"));
        other.release();
    }
}

package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/**
 * The form of java.util.concurrent. The cases are those of Redisson's tests of its RLock, as far
 * as they go through that form, in words of our own; and some about losses.
 */
class ThreadLockTest extends WithServer {
    static <T> T inThread(Callable<T> task) throws Exception {
        var future = new FutureTask<>(task);
        var thread = new Thread(future);
        thread.setDaemon(true);
        thread.start();
        try {
            return future.get(30, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            throw error.getCause() instanceof Exception known ? known : error;
        }
    }

    static <T> CompletableFuture<T> later(Callable<T> task) {
        var future = new CompletableFuture<T>();
        var thread = new Thread(() -> {
            try {
                future.complete(task.call());
            } catch (Throwable error) {
                future.completeExceptionally(error);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return future;
    }

    @Test
    void locksAndUnlocks() {
        var lock = locks.lock(key);
        for (int i = 0; i < 2; i++) {
            lock.lock();
            assertFalse(server.isFree(key));
            lock.unlock();
            assertTrue(server.isFree(key));
        }
    }

    @Test
    void nestsInItsThreadOnly() throws Exception {
        var lock = locks.lock(key);
        assertTrue(lock.tryLock());
        assertTrue(locks.lock(key).tryLock()); // another object, the same lock
        lock.unlock();
        assertFalse(inThread(() -> locks.lock(key).tryLock()));
        assertFalse(inThread(() -> locks.lock(key).tryLock(50, TimeUnit.MILLISECONDS)));
        lock.unlock();
        assertTrue(inThread(() -> {
            boolean got = locks.lock(key).tryLock();
            locks.lock(key).unlock();
            return got;
        }));
    }

    @Test
    void countsItsHolds() {
        var lock = locks.lock(key);
        assertEquals(0, lock.getHoldCount());
        lock.lock();
        lock.lock();
        assertEquals(2, lock.getHoldCount());
        lock.unlock();
        assertEquals(1, lock.getHoldCount());
        lock.unlock();
        assertEquals(0, lock.getHoldCount());
        assertFalse(lock.isHeldByCurrentThread());
    }

    @Test
    void isHeldByOneThread() throws Exception {
        var lock = locks.lock(key);
        assertFalse(lock.isHeldByCurrentThread());
        lock.lock();
        assertTrue(lock.isHeldByCurrentThread() && lock.isHeldAndNotLost());
        assertFalse(inThread(() -> locks.lock(key).isHeldByCurrentThread()));
        lock.unlock();
        assertFalse(lock.isHeldByCurrentThread() || lock.isHeldAndNotLost());
    }

    @Test
    void onlyItsThreadUnlocks() throws Exception {
        var lock = locks.lock(key);
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
        lock.lock();
        assertThrows(IllegalMonitorStateException.class, () -> inThread(() -> {
            locks.lock(key).unlock();
            return null;
        }));
        assertTrue(lock.isHeldAndNotLost());
        lock.unlock();
    }

    @Test
    void waitsForItsTime() throws Exception {
        take(key);
        long began = System.nanoTime();
        assertFalse(locks.lock(key).tryLock(500, TimeUnit.MILLISECONDS));
        long took = (System.nanoTime() - began) / 1_000_000;
        assertTrue(took >= 490 && took < 20_000, took + " ms");
    }

    @Test
    void lockIsNotInterrupted() throws Exception {
        take(key);
        var interrupted = new CompletableFuture<Boolean>();
        var thread = new Thread(() -> {
            locks.lock(key).lock();
            interrupted.complete(Thread.currentThread().isInterrupted());
            locks.lock(key).unlock();
        });
        thread.start();
        server.awaitWaiters(key, 1);
        thread.interrupt();
        Thread.sleep(100);
        assertEquals(1, server.waiters(key));
        give(key);
        assertTrue(interrupted.get(20, TimeUnit.SECONDS));
        thread.join();
    }

    @Test
    void lockInterruptiblyIs() throws Exception {
        interruptedWhileItWaits(() -> locks.lock(key).lockInterruptibly());
    }

    @Test
    void anInterruptedTryHoldsNothingLater() throws Exception {
        var lock = locks.lock(key);
        var thread = new Thread(() -> {
            if (lock.tryLock()) {
                lock.unlock();
            }
        });
        thread.start();
        thread.interrupt();
        thread.join();
        server.awaitFree(key);
    }

    @Test
    void aLeaseThatEndedLetsOthersInAndUnlockReportsIt() throws Exception {
        var lock = locks.lock(Request.of(key).watchdog(false).lease(Duration.ofSeconds(4)));
        lock.lock();
        var other = later(() -> {
            locks.lock(key).lock();
            locks.lock(key).unlock();
            return true;
        });
        assertTrue(other.get(20, TimeUnit.SECONDS));
        assertFalse(lock.isHeldByCurrentThread() || lock.isHeldAndNotLost());
        var error = assertThrows(IllegalMonitorStateException.class, lock::unlock);
        assertInstanceOf(LostException.class, error.getCause());
        assertTrue(lock.hold().isEmpty());
    }

    private Hold lockedTwiceAndLost(ThreadLock lock) throws Exception {
        lock.lock();
        lock.lock();
        var hold = lock.hold().orElseThrow();
        server.say("RLOCK.FORCE " + key);
        assertEquals("forced", reason(hold));
        return hold;
    }

    @Test
    void unlockReportsALoss() throws Exception {
        var lock = locks.lock(key);
        lockedTwiceAndLost(lock);
        for (int i = 0; i < 2; i++) {
            var error = assertThrows(IllegalMonitorStateException.class, lock::unlock);
            assertInstanceOf(LostException.class, error.getCause());
        }
        var error = assertThrows(IllegalMonitorStateException.class, lock::unlock);
        assertEquals(null, error.getCause());
    }

    /** A pool's thread, whose tasks unlock what they still have. */
    @Test
    void whoLocksAfterALossBeginsAnew() throws Exception {
        var lock = locks.lock(key);
        for (int i = 0; i < 3; i++) {
            var lost = lockedTwiceAndLost(lock);
            if (i == 0 && lock.isHeldByCurrentThread() || i == 1 && lock.isHeldAndNotLost()) {
                lock.unlock();
            }
            assertTrue(i == 0 ? lock.tryLock() : lock.tryLock(1, TimeUnit.SECONDS));
            assertEquals(1, lock.getHoldCount());
            assertTrue(lock.hold().orElseThrow().token() > lost.token());
            lock.unlock();
            assertTrue(server.isFree(key));
        }
    }

    @Test
    void whoLocksToSeeWhetherHeHasItGetsTheLossOnce() throws Exception {
        var lock = locks.lock(key).reportingLoss();
        lockedTwiceAndLost(lock);
        assertThrows(LostException.class, lock::tryLock);
        lockedTwiceAndLost(lock);
        assertFalse(lock.isHeldByCurrentThread()); // reported
        assertTrue(lock.tryLock());
        lock.unlock();
    }

    @Test
    void aNestedAcquisitionHasItsLease() throws Exception {
        for (boolean watchdog : new boolean[] {false, true}) {
            var shorter = Request.of(key).watchdog(watchdog).lease(Duration.ofSeconds(10));
            var outer = locks.lock(shorter);
            outer.lock();
            var inner = locks.lock(shorter.lease(Duration.ofSeconds(90)));
            assertTrue(inner.tryLock());
            long left = Long.parseLong(server.say("PTTL " + key).toString());
            assertTrue(left > 50_000 && left <= 90_000, left + " ms");
            outer.lock();
            assertTrue(Long.parseLong(server.say("PTTL " + key).toString()) > 40_000, "it was shortened");
            for (int i = 0; i < 3; i++) {
                outer.unlock();
            }
            assertTrue(server.isFree(key));
        }
    }

    /** Which a wait that ends otherwise, such as for want of threads to wait in a pool's place, is not. */
    @Test
    void aWaitThatTheThreadCannotWaitIsCalledOff() throws Exception {
        take(key);
        var pool = new ForkJoinPool(
                1, ForkJoinPool.defaultForkJoinWorkerThreadFactory, null, false, 1, 1, 1, null, 1, TimeUnit.SECONDS);
        Callable<?>[] waits = {
            () -> locks.acquire(key, LONG),
            () -> {
                locks.lock(key).lock();
                return null;
            },
        };
        for (var wait : waits) {
            var error = assertThrows(ExecutionException.class, pool.submit(wait)::get);
            assertTrue(error.toString().contains("RejectedExecution"), error.toString());
            server.awaitWaiters(key, 0);
        }
        pool.shutdown();
    }

    @Test
    void whatIsHeldByAClosedProcessIsFree() throws Exception {
        var client = Server.client(server.port);
        var theirs = Locks.over(client);
        theirs.lock(key).lock();
        theirs.close();
        client.shutdown(0, 0, TimeUnit.SECONDS);
        server.awaitFree(key);
    }

    @Test
    void theLocksOfAThreadHaveOneOwner() throws Exception {
        var a = locks.lock(key + ":a");
        var b = locks.lock(key + ":b");
        a.lock();
        b.lock();
        String first = a.hold().orElseThrow().owner();
        assertEquals(first, b.hold().orElseThrow().owner());
        b.unlock();
        a.unlock();
        a.lock();
        assertFalse(first.equals(a.hold().orElseThrow().owner()));
        a.unlock();
    }

    @Test
    void threadsThatWaitForEachOtherGetADeadlock() throws Exception {
        var a = locks.lock(key + ":a");
        var b = locks.lock(key + ":b");
        a.lock();
        var other = later(() -> {
            b.lock();
            try {
                a.lock();
                a.unlock();
                return true;
            } finally {
                b.unlock();
            }
        });
        server.awaitWaiters(key + ":a", 1);
        assertThrows(DeadlockException.class, b::lock);
        a.unlock();
        assertTrue(other.get(20, TimeUnit.SECONDS));
    }

    @Test
    void conditionsAreNotSupported() {
        assertThrows(UnsupportedOperationException.class, () -> locks.lock(key).newCondition());
    }

    @Test
    void manyThreadsAndProcessesCountRightly() throws Exception {
        int instances = 4;
        int threads = 4;
        int times = 100;
        var alone = new AtomicInteger();
        int[] counter = {0};
        var client = Server.client(server.port);
        var all = java.util.stream.IntStream.range(0, instances).mapToObj(i -> Locks.over(client)).toList();
        var pool = Executors.newFixedThreadPool(instances * threads);
        var ends = all.stream().flatMap(by -> java.util.stream.Stream.generate(() -> by).limit(threads))
                .map(by -> pool.submit(() -> {
                    for (int i = 0; i < times; i++) {
                        var lock = by.lock(key);
                        lock.lock();
                        try {
                            assertEquals(1, alone.incrementAndGet());
                            counter[0]++;
                            alone.decrementAndGet();
                        } finally {
                            lock.unlock();
                        }
                    }
                    return null;
                })).toList();
        for (var end : ends) {
            end.get(50, TimeUnit.SECONDS);
        }
        pool.shutdown();
        all.forEach(Locks::close);
        client.shutdown(0, 0, TimeUnit.SECONDS);
        assertEquals(instances * threads * times, counter[0]);
    }
}

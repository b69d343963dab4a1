package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * From wherever a call of the program comes: with a monitor, from a pool, from a thread of its own
 * kind, from the end of the stack.
 */
class CallerTest extends WithServer {
    private static final Duration SOON = Server.SOON;

    @AfterEach
    void nothingIsLeft() throws Exception {
        locks.acquire(key + ":new", LONG).release();
        server.awaitNothingLeft();
    }

    private static void inThread(Thread thread) throws Exception {
        inThread(thread, SOON);
    }

    private static void inThread(Thread thread, Duration patience) throws Exception {
        thread.setDaemon(true);
        thread.start();
        thread.join(patience.toMillis());
        assertFalse(thread.isAlive(), "it does not end");
    }

    @Test
    void whoHasTheMonitorOfTheJobWaitsForNobody() throws Exception {
        take(key);
        Job job = locks.job();
        var error = new CompletableFuture<Throwable>();
        inThread(new Thread(() -> {
            synchronized (job) {
                error.complete(assertThrows(
                        NotAcquiredException.class, () -> locks.acquire(Request.of(key).job(job))));
            }
        }));
        error.get();
        locks.acquire(key + ":other", LONG).release();
        give(key);
        locks.acquire(Request.of(key).job(job)).release();
    }

    /** What waits there may run other tasks meanwhile, on its own stack: it would wait for itself. */
    @Test
    void tasksOfTheCommonPoolWaitOneForAnother() throws Exception {
        assertTrue(ForkJoinPool.getCommonPoolParallelism() > 1, "else CompletableFuture does not use it");
        var ends = new ArrayList<CompletableFuture<Void>>();
        Runnable work = () -> {
            try (Hold hold = locks.acquire(key, LONG)) {
                hold.renew(LONG);
                Thread.sleep(5);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        };
        CompletableFuture.runAsync(() -> {
            for (int i = 0; i < 10; i++) {
                ends.add(CompletableFuture.runAsync(work));
            }
            work.run();
        }).get(SOON.toSeconds(), TimeUnit.SECONDS);
        CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new)).get(SOON.toSeconds(), TimeUnit.SECONDS);
    }

    @Test
    void anotherTaskOfThePoolDoesNotHaveTheLocksOfTheOneThatWaits() throws Exception {
        take(key + ":second");
        var end = new CompletableFuture<Void>();
        var busy = new CountDownLatch(ForkJoinPool.getCommonPoolParallelism() - 1);
        for (long left = busy.getCount(); left > 0; left--) { // so that nobody else takes the task
            ForkJoinPool.commonPool().execute(() -> {
                busy.countDown();
                Wait.join(end, false);
            });
        }
        assertTrue(busy.await(20, TimeUnit.SECONDS));
        var inside = new AtomicInteger();
        var most = new AtomicInteger();
        var other = new CompletableFuture<CompletableFuture<Void>>();
        var first = CompletableFuture.runAsync(() -> locked(key, () -> {
            inside.incrementAndGet();
            other.complete(CompletableFuture.runAsync(() -> locked(key, () -> {
                most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                inside.decrementAndGet();
            })));
            locked(key + ":second", () -> {});
            inside.decrementAndGet();
        }));
        server.awaitWaiters(key + ":second", 1);
        give(key + ":second");
        first.get(20, TimeUnit.SECONDS);
        end.complete(null);
        other.get(20, TimeUnit.SECONDS).get(20, TimeUnit.SECONDS);
        assertEquals(1, most.get());
    }

    private void locked(String key, Runnable body) {
        var lock = locks.lock(key);
        lock.lock();
        try {
            body.run();
        } finally {
            lock.unlock();
        }
    }

    /** A thread that takes another for its equal. */
    private static final class Named extends Thread {
        Named(Runnable run) {
            super(run, "one of them");
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Named;
        }

        @Override
        public int hashCode() {
            return 1;
        }
    }

    @Test
    void threadsThatAreEqualAreTwo() throws Exception {
        var lock = locks.lock(key);
        var seen = new CompletableFuture<List<Boolean>>();
        inThread(new Named(() -> {
            lock.lock();
            try {
                inThread(new Named(() -> seen.complete(List.of(lock.tryLock(), lock.isHeldByCurrentThread()))));
            } catch (Exception error) {
                seen.completeExceptionally(error);
            } finally {
                lock.unlock();
            }
        }));
        assertEquals(List.of(false, false), seen.get());
    }

    /** It is configured to refuse whoever would wait; but that what has begun ends, it must not keep from. */
    @Test
    void aPoolThatMayHaveNoMoreThreads() throws Exception {
        var pool = new ForkJoinPool(
                1, ForkJoinPool.defaultForkJoinWorkerThreadFactory, null, false, 0, 1, 1, null, 1, TimeUnit.MINUTES);
        try (var others = LocksTest.through(server.port)) {
            Hold hold = others.locks().acquire(key, LONG);
            pool.submit(() -> {
                hold.renew(LONG);
                hold.release();
                others.locks().close();
            }).get(20, TimeUnit.SECONDS);
            Server.await("the connection is closed", () -> server.named(Own.NAME).isEmpty());
        } finally {
            pool.shutdown();
        }
    }

    @Test
    void anErrorNamesTheLineThatCalled() throws Exception {
        take(key);
        for (long wait : new long[] {0, 50}) {
            var error = assertThrows(
                    NotAcquiredException.class, () -> locks.acquire(key, Duration.ofMillis(wait)));
            var lines = Arrays.stream(error.getStackTrace()).map(StackTraceElement::toString).toList();
            assertTrue(lines.stream().anyMatch(line -> line.contains("CallerTest")), lines::toString);
        }
        give(key);
    }

    /** That of an application which is stopped would stay, for our threads go on. */
    @Test
    void threadsTakeNoClassLoaderAlong() throws Exception {
        var seen = new CompletableFuture<ClassLoader>();
        var thread = new Thread(() -> CallbackExecutor.daemon(
                "one", () -> seen.complete(Thread.currentThread().getContextClassLoader())).start());
        thread.setContextClassLoader(new ClassLoader(CallerTest.class.getClassLoader()) {});
        inThread(thread);
        assertSame(Locks.class.getClassLoader(), seen.get(20, TimeUnit.SECONDS));
    }

    // --- at the end of the stack

    private volatile Throwable wrong;

    /** Does it as deep as there is any stack, a step higher, and so on, until there is room for it. */
    private int climb(Act act) {
        int done;
        try {
            done = climb(act);
        } catch (StackOverflowError error) {
            done = 0;
        }
        if (done > 3 || wrong != null) {
            return done;
        }
        try {
            act.run();
            return done + 1;
        } catch (StackOverflowError error) {
            return 0;
        } catch (Throwable error) {
            wrong = error;
            return 0;
        }
    }

    private void atTheEndOfTheStack(Act act) throws Exception {
        for (int i = 0; i < 3; i++) {
            // Small, for an overflow costs as much as the stack is deep; it works all the time.
            inThread(new Thread(null, () -> climb(act), "deep", 512 * 1024), Duration.ofMinutes(5));
        }
        if (wrong != null) {
            throw new AssertionError(wrong);
        }
    }

    /** What the calls gave, kept without a call. */
    private final Hold[] holds = new Hold[100_000];

    @SuppressWarnings({"unchecked", "rawtypes"})
    private final CompletableFuture<Hold>[] futures = new CompletableFuture[100_000];

    private int many;

    // It works all the time, which is long on a busy machine.
    @Test
    @Timeout(value = 15, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aCallAtTheEndOfTheStackIsDoneOrNotBegun() throws Exception {
        atTheEndOfTheStack(() -> {
            holds[many++] = locks.acquire(key.concat(Integer.toString(many)), LONG);
            holds[many - 1].release();
        });
        for (int i = 0; i < many; i++) {
            if (holds[i] != null) {
                holds[i].release(); // if that was not begun; else it does nothing
            }
        }
        many = 0;
        atTheEndOfTheStack(() -> futures[many++] = locks.acquireAsync(Request.of(key).waiting(LONG)));
        for (int i = 0; i < many; i++) {
            if (futures[i] != null) {
                futures[i].get(20, TimeUnit.SECONDS).release();
            }
        }
        take(key);
        many = 0;
        atTheEndOfTheStack(() -> {
            futures[many++] = locks.acquireAsync(Request.of(key).waitingForEver());
            futures[many - 1].cancel(true);
        });
        for (int i = 0; i < many; i++) {
            if (futures[i] != null) {
                futures[i].cancel(true);
            }
        }
        server.awaitWaiters(key, 0);
        give(key);
    }

    // It works all the time, which is long on a busy machine.
    @Test
    @Timeout(value = 15, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aThreadLockAtTheEndOfTheStackIsLockedOrNot() throws Exception {
        atTheEndOfTheStack(() -> {
            var lock = locks.lock(key);
            if (lock.isHeldByCurrentThread()) {
                lock.unlock(); // which it could not, a step below
                return;
            }
            lock.lock();
            lock.unlock();
        });
    }
}

package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rlock.shedlock.RlockLockProvider;
import dev.rlock.spring.RlockLockRegistry;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.support.LockException;
import org.junit.jupiter.api.Test;

/**
 * An interrupt at each call of the client that blocks: before it, while it waits, and at any time.
 * Then the key is the caller's or free, another can be acquired, and the server has nothing left.
 */
class InterruptTest extends WithServer {
    private static final Duration LEASE = Duration.ofMinutes(1);

    /** What a program says, with all that it has got released or closed at its end. */
    private Map<String, Act> calls() {
        var calls = new LinkedHashMap<String, Act>();
        calls.put("acquire", () -> locks.acquire(key, LONG).release());
        calls.put("a plain acquire", () -> locks.acquire(plain().waiting(LONG)).release());
        calls.put("tryAcquire", () -> locks.tryAcquire(key).ifPresent(Hold::release));
        calls.put("renew", () -> {
            try (Hold hold = locks.acquire(key, LONG)) {
                hold.renew(LEASE);
            }
        });
        calls.put("a job's", () -> {
            var job = locks.job();
            for (int i = 0; i < 2; i++) {
                try (Hold hold = locks.acquire(Request.of(key).job(job).waiting(LONG)); Hold again = hold.again()) {
                    assertFalse(again.isLost());
                }
            }
        });
        calls.put("giveWay", () -> {
            try (Hold hold = locks.acquire(key, LONG)) {
                locks.acquireAsync(Request.of(key).waiting(LONG)).thenAccept(Hold::release);
                if (hold.wanted().get(20, TimeUnit.SECONDS)) {
                    hold.giveWay(LONG, Duration.ZERO);
                }
            }
        });
        calls.put("lock", () -> locked(locks.lock(key), ThreadLock::lock));
        calls.put("tryLock", () -> {
            if (locks.lock(key).tryLock()) {
                locks.lock(key).unlock();
            }
        });
        calls.put("a timed tryLock", () -> locked(locks.lock(key), lock -> {
            while (!lock.tryLock(1, TimeUnit.SECONDS)) {
                Thread.onSpinWait();
            }
        }));
        calls.put("a nested lock with a lease of its own", () -> locked(locks.lock(plain()), lock -> {
            lock.lock();
            locked(locks.lock(plain().lease(LEASE)), ThreadLock::lockInterruptibly);
        }));
        calls.put("lockInterruptibly", () -> locked(locks.lock(key), ThreadLock::lockInterruptibly));
        calls.put("read and write", () -> {
            var both = locks.readWriteLock(key + ":rw");
            locked(both.writeLock(), write -> {
                write.lockInterruptibly();
                locked(both.readLock(), ThreadLock::lockInterruptibly);
            });
        });
        calls.put("ShedLock", () -> {
            var shed = new RlockLockProvider(locks).lock(shed(Duration.ZERO));
            if (shed.isPresent()) {
                var extended = shed.get().extend(LEASE, Duration.ZERO);
                extended.orElse(shed.get()).unlock();
            }
        });
        calls.put("Spring", () -> new RlockLockRegistry(locks, "app:").<Exception>executeLocked(key, LONG, () -> {}));
        calls.put("close", () -> {
            try (var others = LocksTest.through(server.port)) {
                others.locks().acquire(key, LONG);
            }
        });
        return calls;
    }

    private interface Locking {
        void by(ThreadLock lock) throws Exception;
    }

    private static void locked(ThreadLock lock, Locking locking) throws Exception {
        try {
            locking.by(lock);
        } finally {
            if (lock.isHeldByCurrentThread()) {
                lock.unlock();
            }
        }
    }

    private Request plain() {
        return Request.of(key).watchdog(false).lease(Duration.ofSeconds(30));
    }

    private LockConfiguration shed(Duration least) {
        return new LockConfiguration(Instant.now(), key, LEASE, least);
    }

    /** Runs it in a thread; what it threw, if not for an interrupt. */
    private static CompletableFuture<Void> running(Thread[] thread, Act act, Runnable first) {
        var end = new CompletableFuture<Void>();
        thread[0] = new Thread(() -> {
            first.run();
            try {
                act.run();
                end.complete(null);
            } catch (InterruptedException | LockException | TimeoutException error) {
                end.complete(null);
            } catch (Throwable error) {
                end.completeExceptionally(error);
            }
        });
        thread[0].start();
        return end;
    }

    private void isWell(String what) throws Exception {
        server.awaitNothingLeft();
        try (Hold hold = locks.acquire(key, LONG); Hold other = locks.acquire(key + ":other", LONG)) {
            assertFalse(hold.isLost() || other.isLost(), what);
        }
        server.awaitNothingLeft();
    }

    @Test
    void beforeEachCall() throws Exception {
        for (var call : calls().entrySet()) {
            running(new Thread[1], call.getValue(), Thread.currentThread()::isInterrupted).get(20, TimeUnit.SECONDS);
            running(new Thread[1], call.getValue(), () -> Thread.currentThread().interrupt()).get(20, TimeUnit.SECONDS);
            isWell(call.getKey());
        }
    }

    @Test
    void whileEachCallWaitsForTheServer() throws Exception {
        try (var proxy = new Proxy(server.port); var through = LocksTest.through(proxy)) {
            locks.close();
            locks = through.locks();
            locks.acquire("first", LONG).release();
            for (var call : calls().entrySet()) {
                if (call.getKey().equals("close")) {
                    continue;
                }
                for (String word : new String[] {"ACQUIRE", "RENEW", "RELEASE"}) {
                    var thread = new Thread[1];
                    proxy.holdAt(word);
                    var end = running(thread, call.getValue(), () -> {});
                    Server.await("the word", () -> proxy.isHolding() || end.isDone());
                    Server.await("it waits", () -> end.isDone()
                            || thread[0].getState() == Thread.State.WAITING
                            || thread[0].getState() == Thread.State.TIMED_WAITING);
                    thread[0].interrupt();
                    proxy.hold(false);
                    end.get(20, TimeUnit.SECONDS);
                    isWell(call.getKey() + " at " + word);
                }
            }
        }
    }

    /** Hundreds of rounds of each: some while another has the key, which is given up at once. */
    @Test
    void atAnyTime() throws Exception {
        var random = new Random();
        long seed = random.nextLong();
        random.setSeed(seed);
        for (var call : calls().entrySet()) {
            int rounds = call.getKey().equals("close") ? 20 : 200;
            for (int i = 0; i < rounds; i++) {
                var thread = new Thread[1];
                var end = running(thread, call.getValue(), () -> {});
                for (int spins = random.nextInt(1 << random.nextInt(17)); spins > 0; spins--) {
                    Thread.onSpinWait();
                }
                thread[0].interrupt();
                try {
                    end.get(20, TimeUnit.SECONDS);
                } catch (Exception error) {
                    throw new AssertionError(call.getKey() + ", seed " + seed, error);
                }
            }
            isWell(call.getKey());
        }
    }

    @Test
    void aThreadThatIsInterruptedAgainAndAgainMayLockAgain() throws Exception {
        take(key);
        var job = locks.job();
        var lock = locks.lock(key);
        lock.tryLock(1, TimeUnit.MILLISECONDS); // the thread has no job yet
        locks.lock(key + ":outer").lock(); // and now it has
        for (int i = 0; i < 200; i++) {
            Thread.currentThread().interrupt();
            assertThrows(InterruptedException.class, () -> locks.acquire(Request.of(key).job(job).waiting(LONG)));
            var here = Thread.currentThread();
            var interrupts = CompletableFuture.runAsync(here::interrupt);
            boolean first = i % 2 == 0;
            assertThrows(InterruptedException.class, () -> {
                if (first) {
                    lock.lockInterruptibly();
                } else {
                    locks.acquire(Request.of(key).job(job).waiting(LONG));
                }
            });
            interrupts.get();
            Thread.interrupted();
        }
        give(key);
        locks.acquire(Request.of(key).job(job).waiting(LONG)).release();
        lock.lock();
        lock.unlock();
        locks.lock(key + ":outer").unlock();
        server.awaitNothingLeft();
    }

    @Test
    void anInterruptedRenewalIsDoneOrAnError() throws Exception {
        Hold hold = locks.acquire(plain());
        Thread.currentThread().interrupt();
        hold.renew(LEASE);
        assertTrue(Thread.interrupted());
        long left = Long.parseLong(server.say("PTTL " + key).toString());
        assertTrue(left > 50_000, left + " ms");
        server.say("DEL " + key);
        Thread.currentThread().interrupt();
        assertThrows(LostException.class, () -> hold.renew(LEASE));
        assertTrue(Thread.interrupted());
    }

    @Test
    void anInterruptedExtensionIsTrue() throws Exception {
        var shed = new RlockLockProvider(locks).lock(shed(Duration.ZERO)).orElseThrow();
        server.say("DEL shedlock:" + key);
        Thread.currentThread().interrupt();
        assertTrue(shed.extend(LEASE, Duration.ZERO).isEmpty());
        assertTrue(Thread.interrupted());

        try (var own = new Server()) {
            try (var others = LocksTest.through(own.port)) {
                var stopped = new RlockLockProvider(others.locks()).lock(shed(Duration.ZERO)).orElseThrow();
                own.signal("STOP");
                Thread.currentThread().interrupt();
                var error = assertThrows(RlockException.class, () -> stopped.extend(LEASE, Duration.ZERO));
                assertInstanceOf(ConnectionException.class, error);
                assertTrue(Thread.interrupted());
                own.signal("CONT");
            }
        }
    }

    @Test
    void aCloseFreesWhoWaitsForTheTimer() throws Exception {
        try (var proxy = new Proxy(server.port); var through = LocksTest.through(proxy)) {
            take(key);
            var job = through.locks().job();
            var request = Request.of(key).waitingForEver().job(job);
            var first = through.locks().acquireAsync(request);
            server.awaitWaiters(key, 1);
            proxy.hold(true);
            first.cancel(true);
            var second = through.locks().acquireAsync(request); // when the first is known to be over
            through.locks().close();
            var error = assertThrows(Exception.class, () -> second.get(20, TimeUnit.SECONDS));
            assertInstanceOf(ConnectionException.class, error.getCause());
            give(key);
        }
        assertEquals(0, server.waiters(key));
    }
}

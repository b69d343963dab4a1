package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The same locks on a server without the module, by its functions. */
@WithServer.NoModule
class WithoutModuleTest extends WithServer {
    private void take() throws InterruptedException {
        locks.tryAcquire("first").ifPresent(Hold::release); // which loads the library
        server.say("FCALL rlock1_acquire 1 " + key + " other 60000");
    }

    private void give() {
        server.say("FCALL rlock1_release 1 " + key + " other");
    }

    private long left(String key) {
        return (Long) server.say("PTTL " + key);
    }

    private boolean isFree(String key) {
        return left(key) == -2;
    }

    private void awaitPlaces(int many) {
        Server.await(many + " places", () -> server.say("ZCARD rlock1_queue:{" + key + "}").equals((long) many));
    }

    @Test
    void aLockExcludesAndItsTokensRise() throws Exception {
        assertEquals(Optional.empty(), locks.backend());
        try (var others = Locks.over(client)) {
            Hold first = locks.acquire(key, Duration.ZERO);
            assertEquals(Optional.of(Backend.FUNCTIONS), locks.backend());
            assertEquals(Optional.empty(), others.tryAcquire(key));
            first.release();
            Hold second = others.acquire(key, Duration.ZERO);
            assertTrue(second.token() > first.token());
            second.release();
            assertTrue(isFree(key));
        }
    }

    @Test
    void whoWaitsTriesWhenItIsReleased() throws Exception {
        take();
        var wait = locks.acquireAsync(Request.of(key).waiting(LONG));
        awaitPlaces(1);
        give();
        wait.get(20, TimeUnit.SECONDS).release();
        assertTrue(isFree(key));
        awaitPlaces(0);
    }

    private List<?> places() {
        return (List<?>) server.say("ZRANGE rlock1_queue:{" + key + "} 0 -1");
    }

    private long tries() {
        var calls = Pattern.compile("cmdstat_fcall:calls=(\\d+)").matcher(server.say("INFO commandstats").toString());
        return calls.find() ? Long.parseLong(calls.group(1)) : 0;
    }

    @Test
    void aPlaceOutlivesItsConnection() throws Exception {
        take();
        var wait = locks.acquireAsync(Request.of(key).waiting(LONG));
        awaitPlaces(1);
        var before = places();
        for (int times = 0; times < 3; times++) {
            long tried = tries();
            assertTrue((Long) server.say("CLIENT KILL TYPE pubsub") > 0);
            Server.await("it tries on the next one", () -> tries() >= tried + 2);
            Server.await("its place", () -> places().equals(before));
        }
        // Only one place is there, so it has no dead connection's to wait for.
        assertEquals(1, before.size());
        give();
        wait.get(20, TimeUnit.SECONDS).release();
        awaitPlaces(0);
    }

    @Test
    void waitsOfOneProcessStandInOneLine() throws Exception {
        take();
        var first = locks.acquireAsync(Request.of(key).waiting(LONG));
        var second = locks.acquireAsync(Request.of(key).waitingForEver());
        awaitPlaces(1);
        give();
        first.get(20, TimeUnit.SECONDS).release();
        second.get(20, TimeUnit.SECONDS).release();
        assertTrue(isFree(key));
    }

    @Test
    void aWaitThatIsCancelledGivesUpItsPlace() throws Exception {
        take();
        var wait = locks.acquireAsync(Request.of(key).waitingForEver());
        awaitPlaces(1);
        wait.cancel(true);
        awaitPlaces(0);
        give();
        assertTrue(isFree(key));
    }

    @Test
    void notAcquiredIsSaidWhenTheTimeIsOver() throws Exception {
        take();
        assertThrows(NotAcquiredException.class, () -> locks.acquire(key, Duration.ofMillis(30)));
        assertThrows(NotAcquiredException.class, () -> locks.acquire(key, Duration.ofMillis(300)));
        awaitPlaces(0);
    }

    @Test
    void aLeaseThatEndsIsNotWaitedForLonger() throws Exception {
        locks.tryAcquire("first").ifPresent(Hold::release);
        server.say("FCALL rlock1_acquire 1 " + key + " other 400");
        locks.acquire(key, LONG).release();
    }

    @Test
    void aHoldIsRenewed() throws Exception {
        Hold hold = locks.acquire(Request.of(key).lease(Duration.ofSeconds(6)));
        long end = System.nanoTime() + Duration.ofSeconds(8).toNanos();
        while (System.nanoTime() < end) {
            assertFalse(isFree(key));
            Thread.sleep(20);
        }
        assertFalse(hold.isLost());
        hold.release();
        assertTrue(isFree(key));
    }

    @Test
    void whatIsGoneIsLost() throws Exception {
        Hold deleted = locks.acquire(Request.of(key).lease(Duration.ofSeconds(6)));
        Hold overwritten = locks.acquire(Request.of(key + "2").lease(Duration.ofSeconds(6)));
        server.say("DEL " + key);
        server.say("SET " + key + "2 x");
        assertEquals("deleted", WithServer.reason(deleted));
        assertEquals("overwritten", WithServer.reason(overwritten));
        assertThrows(LostException.class, deleted::release);
    }

    @Test
    void aReleaseFindsOutThatItIsGone() throws Exception {
        Hold hold = locks.acquire(key, Duration.ZERO);
        server.say("DEL " + key);
        assertEquals("deleted", assertThrows(LostException.class, hold::release).reason());
    }

    @Test
    void aHoldOutlivesItsConnection() throws Exception {
        try (var proxy = new Proxy(server.port); var through = LocksTest.through(proxy)) {
            Hold hold = through.locks().acquire(Request.of(key).lease(Duration.ofSeconds(6)));
            proxy.cut();
            // It is renewed by the next one.
            var before = new AtomicLong(Long.MAX_VALUE);
            Server.await("a new connection", () -> {
                long left = left(key);
                return left > before.getAndSet(left);
            });
            assertFalse(hold.isLost());
            hold.release();
            Server.await(key + " is free", () -> isFree(key));
        }
    }

    @Test
    void aHoldThatCannotBeRenewedIsLostWithItsLease() throws Exception {
        try (var proxy = new Proxy(server.port); var through = LocksTest.through(proxy)) {
            Hold hold = through.locks().acquire(Request.of(key).lease(Duration.ofSeconds(3)));
            proxy.refuse(true);
            proxy.cut();
            assertEquals("lease", WithServer.reason(hold));
        }
    }

    @Test
    void functionsThatAreGoneAreLoadedAgain() throws Exception {
        Hold hold = locks.acquire(key, Duration.ZERO);
        server.say("FUNCTION FLUSH");
        var more = locks.acquireAsync(Request.of(key + "2"));
        hold.renew(LONG);
        more.get(20, TimeUnit.SECONDS).release();
        server.say("FUNCTION FLUSH");
        hold.release();
        assertTrue(isFree(key));
    }

    @Test
    void readersShareAndAWriterThatReadsToo() throws Exception {
        Hold one = locks.acquire(Request.of(key).read());
        Hold two = locks.acquire(Request.of(key).read());
        var writer = locks.acquireAsync(Request.of(key).write().waiting(LONG));
        awaitPlaces(1);
        one.release();
        two.release();
        writer.get(20, TimeUnit.SECONDS).release();
        var thread = locks.readWriteLock(key);
        thread.writeLock().lock();
        thread.readLock().lock();
        thread.writeLock().unlock();
        thread.readLock().unlock();
        assertTrue(isFree(key));
    }

    @Test
    void permitsThatComeBackAreTaken() throws Exception {
        Hold one = locks.acquire(Request.of(key).limit(2));
        Hold two = locks.acquire(Request.of(key).limit(2));
        var both = locks.acquireAsync(Request.of(key).limit(2).permits(2).waiting(LONG));
        awaitPlaces(1);
        one.release();
        two.release();
        both.get(20, TimeUnit.SECONDS).release();
    }

    @Test
    void severalLocksAtOnce() throws Exception {
        take();
        var both = locks.acquireAsync(Request.of(key + "1", key).waiting(LONG));
        Server.await("it listens", () -> server.say("PUBSUB NUMSUB redisson_lock__channel:{" + key + "}").toString().contains("1"));
        give();
        both.get(20, TimeUnit.SECONDS).release();
        assertTrue(isFree(key + "1"));
    }

    @Test
    void eachAcquisitionOfAJobHasAnOwnerOfItsOwn() throws Exception {
        Job job = locks.job();
        Hold one = locks.acquire(Request.of(key).job(job));
        Hold two = locks.acquire(Request.of(key + "2").job(job));
        assertNotEquals(one.owner(), two.owner());
        assertThrows(HeldByJobException.class, () -> locks.acquire(Request.of(key).job(job)));
        one.release();
        locks.acquire(Request.of(key).job(job)).release();
        two.release();
    }

    @Test
    void closeLeavesNothing() throws Exception {
        take();
        Hold hold = locks.acquire(key + "2", Duration.ZERO);
        var wait = locks.acquireAsync(Request.of(key).waitingForEver());
        awaitPlaces(1);
        locks.close();
        assertTrue(wait.isCompletedExceptionally());
        assertEquals("closed", WithServer.reason(hold));
        assertTrue(isFree(key + "2"));
        awaitPlaces(0);
    }

    @Test
    void whoRequiresTheModuleIsRefused() {
        try (var strict = Locks.over(client, LONG, Backend.MODULE)) {
            var why = assertThrows(RefusedException.class, () -> strict.acquire(Request.of(key).waitingForEver()));
            assertEquals("ERR", why.code());
        }
    }
}

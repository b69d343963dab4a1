package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class LossTest extends WithServer {
    private Hold hold(Request request) throws Exception {
        return locks.acquire(request);
    }

    @Test
    void aForcedHoldIsLost() throws Exception {
        Hold hold = hold(Request.of(key));
        Hold beside = hold(Request.of(key + ":beside"));
        server.say("RLOCK.FORCE " + key);
        assertEquals("forced", reason(hold));
        assertTrue(hold.isLost());
        assertFalse(beside.isLost());
        assertEquals("forced", assertThrows(LostException.class, hold::release).reason());
        hold.release(); // a second one does nothing
        assertThrows(LostException.class, () -> hold.again());
        beside.release();
    }

    @Test
    void aDeletedHoldIsLost() throws Exception {
        Hold hold = hold(Request.of(key));
        server.say("DEL " + key);
        assertEquals("deleted", reason(hold));
    }

    @Test
    void theLossComesOutOfTheScope() {
        assertThrows(LostException.class, () -> {
            try (Hold hold = hold(Request.of(key))) {
                server.say("RLOCK.FORCE " + key);
                reason(hold);
            }
        });
    }

    /** What the body throws and what the scope's own release throws are two, or Java refuses the second. */
    @Test
    void theLossComesOutOfTheBodyOfAScope() {
        for (Act body : new Act[] {
            hold -> hold.renew(LONG),
            hold -> hold.again().release(),
            hold -> hold.releaseAsync().join(),
            hold -> {
                throw hold.lost().toCompletableFuture().get();
            }
        }) {
            var error = assertThrows(RuntimeException.class, () -> {
                try (Hold hold = hold(Request.of(key))) {
                    server.say("RLOCK.FORCE " + key);
                    reason(hold);
                    body.run(hold);
                }
            });
            assertEquals(LostException.class, cause(error).getClass());
        }
    }

    private interface Act {
        void run(Hold hold) throws Exception;
    }

    @Test
    void aPlainLeaseEndsAtItsTime() throws Exception {
        Hold hold = hold(Request.of(key).watchdog(false).lease(Duration.ofSeconds(4)));
        String reason = reason(hold);
        assertTrue(reason.equals("lease") || reason.equals("expired"), reason);
        server.awaitFree(key);
    }

    @Test
    void aPlainLeaseIsRenewedByHand() throws Exception {
        Hold hold = hold(Request.of(key).watchdog(false).lease(Duration.ofSeconds(6)));
        hold.renew(Duration.ofMinutes(1));
        Thread.sleep(6_200); // it would have ended
        assertFalse(hold.isLost());
        hold.release();
        assertTrue(server.isFree(key));
        assertThrows(IllegalStateException.class, () -> hold.renew(LONG));
    }

    @Test
    void renewalReportsALoss() throws Exception {
        Hold hold = hold(Request.of(key));
        server.say("DEL " + key);
        assertThrows(LostException.class, () -> hold.renew(LONG));
        assertTrue(hold.isLost());
    }

    @Test
    void aHoldIsLeftToItsLease() throws Exception {
        Hold hold = hold(Request.of(key).watchdog(false).lease(LONG));
        hold.atLeast(Duration.ofSeconds(6));
        hold.release();
        assertFalse(server.isFree(key));
        assertFalse(hold.isLost());
        server.awaitFree(key);
        assertThrows(IllegalStateException.class, () -> hold(Request.of(key)).atLeast(LONG));
    }

    @Test
    void maxBoundsAHold() throws Exception {
        Hold hold = hold(Request.of(key).max(Duration.ofSeconds(4)));
        assertEquals("max", reason(hold));
        server.awaitFree(key);
    }

    @Test
    void aShortLeaseIsRenewedByTheServer() throws Exception {
        Hold hold = hold(Request.of(key).lease(Duration.ofSeconds(5)));
        Thread.sleep(8_000);
        assertFalse(hold.isLost());
        hold.release();
    }

    @Test
    void theOtherKeysOfALostHoldAreFreeAtOnce() throws Exception {
        String other = key + ":2";
        Hold hold = hold(Request.of(key, other));
        server.say("RLOCK.FORCE " + key);
        assertEquals("forced", reason(hold));
        server.awaitFree(other);
        assertThrows(LostException.class, hold::release);
    }

    @Test
    void whatDependsOnTheLossMayBlock() throws Exception {
        Hold hold = hold(Request.of(key));
        var done = hold.lost().thenAccept(lost -> {
            try {
                locks.acquire(key + ":2", LONG).release(); // needs the thread that reads
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
        server.say("RLOCK.FORCE " + key);
        done.toCompletableFuture().get(20, TimeUnit.SECONDS);
    }
}

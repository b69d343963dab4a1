package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Holds that give way to those of somebody else. */
abstract class WithWay extends WithOthers {
    static final Duration NONE = Duration.ZERO;

    /** What was said of holds. */
    int said() {
        return proxy.said("\nRLOCK\\.(M?ACQUIRE|M?RELEASE|M?RENEW|CANCEL)(?=\n)");
    }

    static CompletableFuture<Boolean> gives(Hold hold) {
        return hold.giveWayAsync(null, NONE);
    }

    /** Another waits for it, who has it once it gives way. */
    CompletableFuture<Hold> wantedBy(Hold hold, Request request) {
        var waits = waits(request);
        awaitWanted(hold, true);
        return waits;
    }

    static Hold of(CompletableFuture<Hold> waits) throws Exception {
        return waits.get(20, TimeUnit.SECONDS);
    }

    static Throwable failure(CompletableFuture<?> future) {
        return assertThrows(ExecutionException.class, () -> future.get(20, TimeUnit.SECONDS)).getCause();
    }

    /** The one in between lets go: the hold has the lock again, behind that one. */
    static void comesBack(Hold hold, CompletableFuture<Boolean> gives, Hold between) throws Exception {
        between.release();
        assertTrue(end(gives));
        assertTrue(hold.token() > between.token());
    }

    /** It gives way once more to one who has the lock just so long. */
    void givesWay(Hold hold) throws Exception {
        long token = hold.token();
        var waits = wantedBy(hold, Request.of(hold.key()));
        var gives = gives(hold);
        Hold between = of(waits);
        assertTrue(between.token() > token);
        server.awaitWaiters(hold.key(), 1);
        comesBack(hold, gives, between);
        assertFalse(hold.isLost());
    }

    /** That was in vain: the hold is over, for all that ask it, and its release does nothing. */
    static void isOver(Hold hold, String reason) throws Exception {
        assertEquals(reason, reason(hold));
        assertTrue(hold.isLost());
        assertFalse(hold.isWanted());
        assertFalse(end(hold.wanted()));
        assertEquals(reason, assertThrows(LostException.class, () -> hold.renew(LONG)).reason());
        assertEquals(reason, assertThrows(LostException.class, hold::giveWay).reason());
        assertThrows(LostException.class, hold::again);
        hold.release();
        hold.close();
    }
}

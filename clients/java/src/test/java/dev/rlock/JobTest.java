package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

/** What a job asks for next comes after the end of what it had, which would end that too. */
class JobTest extends WithServer {
    /** Which the server refuses until {@link #allow}. */
    private static void refuse(String command) {
        server.say("ACL SETUSER default -" + command);
    }

    private static void allow(String command) {
        server.say("ACL SETUSER default +" + command);
    }

    /** A short lease, so that it is retried soon. */
    private static Request request(Job job, String... keys) {
        return (keys.length == 1 ? Request.of(keys[0]) : Request.of(keys[0], keys[1]))
                .job(job).lease(Duration.ofSeconds(6)).waiting(LONG);
    }

    private static void staysHeld(Hold hold) throws Exception {
        assertThrows(TimeoutException.class,
                () -> hold.lost().toCompletableFuture().get(4, TimeUnit.SECONDS));
        assertFalse(server.isFree(hold.key()));
        hold.release();
    }

    @Test
    void afterAReleaseThatIsRefused() throws Exception {
        Job job = locks.job();
        Hold first = locks.acquire(request(job, key));
        refuse("rlock.release");
        try {
            assertEquals("NOPERM", assertThrows(RefusedException.class, first::release).code());
            var next = locks.acquireAsync(request(job, key));
            var once = request(job, key + ":2").waiting(Duration.ZERO);
            locks.acquire(once); // of another key it waits for nothing
            comesOnceAllowed("rlock.release", first, next);
        } finally {
            allow("rlock.release");
        }
    }

    @Test
    void afterALossOfOneOfSeveralWhoseReleaseIsRefused() throws Exception {
        String other = key + ":2";
        Job job = locks.job();
        Hold both = locks.acquire(request(job, key, other));
        refuse("rlock.mrelease");
        try {
            server.say("RLOCK.FORCE " + key);
            assertEquals("forced", reason(both));
            var next = locks.acquireAsync(request(job, other));
            assertThrows(LostException.class, both::release);
            comesOnceAllowed("rlock.mrelease", both, next);
        } finally {
            allow("rlock.mrelease");
        }
    }

    /** The next hold waits for the end of the one before, which the server takes from now on. */
    private void comesOnceAllowed(String command, Hold before, CompletableFuture<Hold> next) throws Exception {
        assertFalse(next.isDone());
        allow(command);
        Hold second = next.get(20, TimeUnit.SECONDS);
        assertTrue(second.token() > before.token());
        staysHeld(second);
    }

    /** It does not wait longer than it said. */
    @Test
    void whatIsNotTakenInTime() throws Exception {
        var client = Server.client(server.port);
        try (var own = Locks.over(client, Duration.ofSeconds(6))) {
            Job job = own.job();
            Hold first = own.acquire(request(job, key));
            refuse("rlock.release");
            assertThrows(RefusedException.class, first::release);
            var once = request(job, key).waiting(Duration.ZERO);
            var error = assertThrows(ConnectionException.class, () -> own.acquire(once));
            assertTrue(error.getMessage().contains(key), error.getMessage());
            allow("rlock.release");
            own.acquire(request(job, key)).release();
        } finally {
            allow("rlock.release");
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }
}

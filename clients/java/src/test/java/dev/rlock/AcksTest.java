package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;

/** Whatever becomes of the connection by which replicas are asked, the session's own stays, with all holds. */
class AcksTest extends WithServer {
    private void isRefusedAlone(Act act) throws Exception {
        try (Hold other = locks.acquire(key + ":other", LONG)) {
            act.run();
            assertFalse(other.isLost());
        }
        server.awaitFree(key);
    }

    @Test
    void itCannotBeHad() throws Exception {
        isRefusedAlone(() -> {
            server.say("CONFIG SET maxclients " + server.say("CLIENT LIST").toString().lines().count());
            try {
                var error = assertThrows(RefusedException.class, () -> locks.acquire(Request.of(key).acks(1)));
                assertEquals("NOREPLICAS", error.code());
            } finally {
                server.say("CONFIG SET maxclients 1000");
            }
        });
    }

    @Test
    void itBreaks() throws Exception {
        isRefusedAlone(() -> {
            var future = locks.acquireAsync(Request.of(key).acks(1, Duration.ofSeconds(40)));
            Server.await("replicas are asked", () -> !waiting().isEmpty());
            server.say("CLIENT KILL ID " + waiting());
            var error = assertInstanceOf(
                    RefusedException.class, cause(assertThrows(CompletionException.class, future::join)));
            assertEquals("NOREPLICAS", error.code());
        });
    }

    private String waiting() {
        return server.named(Own.NAME).stream()
                .filter(line -> line.contains(" cmd=wait "))
                .map(line -> line.replaceAll("^id=(\\d+) .*", "$1"))
                .findFirst()
                .orElse("");
    }
}

package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCredentials;
import io.lettuce.core.RedisCredentialsProvider;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** A server that will not have us says so at once, also to who would wait for ever. */
class RefusalTest extends WithServer {
    private static final List<String> ADMIN = List.of(
            "ACL SETUSER boss on >secret ~* &* +@all",
            "ACL SETUSER nochannel on >secret ~* resetchannels +@all",
            "ACL SETUSER nosubscribe on >secret ~* &* +@all -subscribe -ssubscribe");

    private static RedisURI uri(int port, String user, String password) {
        var uri = RedisURI.builder().withHost("127.0.0.1").withPort(port);
        return (user == null ? uri : uri.withAuthentication(user, password)).build();
    }

    /** All that asks is refused with this code, long before its time is over. */
    private void refuses(Locks locks, String code) throws Exception {
        var request = Request.of(key).waitingForEver();
        var lock = locks.lock(key);
        List<Act> calls = List.of(
                () -> locks.acquire(request),
                () -> locks.acquire(key, Duration.ZERO),
                () -> locks.acquireAsync(request).get(),
                lock::lock,
                lock::tryLock,
                () -> lock.tryLock(1, TimeUnit.HOURS));
        for (Act call : calls) {
            var thrown = new CompletableFuture<Throwable>();
            var thread = new Thread(() -> {
                try {
                    call.run();
                    thrown.complete(null);
                } catch (Throwable error) {
                    thrown.complete(error instanceof ExecutionException ? error.getCause() : error);
                }
            });
            thread.setDaemon(true);
            thread.start();
            var refused = assertInstanceOf(RefusedException.class, thrown.get(20, TimeUnit.SECONDS));
            assertEquals(code, refused.code());
        }
    }

    private void refusesAll(int port, boolean cluster) throws Exception {
        var cases = List.of(
                List.of("boss", "wrong", "WRONGPASS"),
                List.of("nobody", "secret", "WRONGPASS"),
                List.of("nochannel", "secret", "NOPERM"),
                List.of("nosubscribe", "secret", "NOPERM"));
        for (var one : cases) {
            over(uri(port, one.get(0), one.get(1)), cluster, locks -> refuses(locks, one.get(2)));
        }
        over(uri(port, null, null), cluster, locks -> refuses(locks, "NOAUTH"));
        over(uri(port, "boss", "secret"), cluster, locks -> locks.acquire(key, LONG).release());
    }

    private interface With {
        void run(Locks locks) throws Exception;
    }

    private void over(RedisURI uri, boolean cluster, With with) throws Exception {
        if (cluster) {
            var client = RedisClusterClient.create(uri);
            try (var locks = Locks.over(client, LONG)) {
                with.run(locks);
            }
            client.shutdown(0, 0, TimeUnit.SECONDS);
        } else {
            var client = RedisClient.create(uri);
            try (var locks = Locks.over(client, LONG)) {
                with.run(locks);
            }
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    @Test
    void byOneServer() throws Exception {
        try (var own = new Server()) {
            ADMIN.forEach(own::say);
            own.say("ACL SETUSER default >secret");
            refusesAll(own.port, false);
        }
    }

    @Test
    void byACluster() throws Exception {
        try (var cluster = new TestCluster()) {
            for (Server node : cluster.nodes) {
                ADMIN.forEach(node::say);
                node.say("ACL SETUSER default >secret");
            }
            refusesAll(cluster.nodes.get(0).port, true);
        }
    }

    /** Waits and renewals under way, when the connection is closed and its user gone. */
    @Test
    void whoWaitsAlready() throws Exception {
        try (var own = new Server()) {
            ADMIN.forEach(own::say);
            over(uri(own.port, "boss", "secret"), false, locks -> {
                Hold hold = locks.acquire(Request.of(key).watchdog(false).lease(LONG));
                own.say("RLOCK.ACQUIRE taken other 60000");
                var waits = locks.acquireAsync(Request.of("taken").waitingForEver());
                own.awaitWaiters("taken", 1);
                own.say("ACL DELUSER boss");
                var error = assertThrows(Exception.class, () -> waits.get(20, TimeUnit.SECONDS));
                assertEquals("WRONGPASS", assertInstanceOf(RefusedException.class, error.getCause()).code());
                assertEquals("WRONGPASS", assertThrows(RefusedException.class, () -> hold.renew(LONG)).code());
            });
        }
    }

    /** What gives the credentials is the program's code: it is asked anew for each connection, and may block. */
    @Test
    void credentialsThatChange() throws Exception {
        try (var cluster = new TestCluster(); var own = new Server()) {
            for (boolean inCluster : new boolean[] {false, true}) {
                var nodes = inCluster ? cluster.nodes : List.of(own);
                nodes.forEach(node -> node.say("ACL SETUSER boss on >one ~* &* +@all"));
                var uri = RedisURI.builder().withHost("127.0.0.1").withPort(nodes.get(0).port).build();
                var password = new AtomicReference<>("one");
                uri.setCredentialsProvider(RedisCredentialsProvider.from(() -> {
                    try {
                        Thread.sleep(50);
                    } catch (InterruptedException error) {
                        throw new IllegalStateException(error);
                    }
                    return RedisCredentials.just("boss", password.get());
                }));
                over(uri, inCluster, locks -> {
                    Hold hold = locks.acquire("{b}" + key, LONG);
                    password.set("two");
                    nodes.forEach(node -> node.say("ACL SETUSER boss on resetpass >two"));
                    nodes.forEach(node -> node.say("CLIENT KILL USER boss"));
                    assertEquals("connection", reason(hold));
                    locks.acquire("{b}" + key, LONG).release();
                    locks.acquire("{c}" + key, LONG).release();
                });
            }
        }
    }

    @Test
    void aClientThatCannotConnectSaysWhy() {
        var client = Server.client(Ports.free());
        try (var locks = Locks.over(client, Duration.ofSeconds(3))) {
            var error = assertThrows(ConnectionException.class, () -> locks.acquire(key, Duration.ZERO));
            assertTrue(error.getMessage().contains("refused"), error.getMessage());
        }
        client.shutdown(0, 0, TimeUnit.SECONDS);
    }
}

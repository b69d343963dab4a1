package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.protocol.ProtocolVersion;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What the program sets for its own connections is not for ours, and what shows who we are. */
class LimitsTest extends WithServer {
    private static final Duration SHORT = Duration.ofMillis(200);

    private static ClientOptions.Builder tight(ClientOptions.Builder options) {
        return options
                .timeoutOptions(TimeoutOptions.enabled())
                .requestQueueSize(4)
                .autoReconnect(false)
                .pingBeforeActivateConnection(false)
                .protocolVersion(ProtocolVersion.RESP2)
                .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .socketOptions(SocketOptions.builder().connectTimeout(SHORT).build());
    }

    private static RedisURI uri(int port) {
        return RedisURI.builder().withHost("127.0.0.1").withPort(port).withTimeout(SHORT).build();
    }

    /** The server is frozen for longer than the program's time-out, and for less than any lease. */
    private void outlivesAPause(Locks locks, Server server) throws Exception {
        Hold hold = locks.acquire(Request.of(key).lease(LONG));
        Hold plain = locks.acquire(Request.of(key + ":plain").watchdog(false).lease(LONG));
        server.signal("STOP");
        var all = new ArrayList<CompletableFuture<Hold>>();
        for (int i = 0; i < 100; i++) { // more than its queue holds
            all.add(locks.acquireAsync(Request.of(key + i)));
        }
        var renewal = hold.renewAsync(LONG);
        Thread.sleep(700); // so long is what is tried here
        server.signal("CONT");
        renewal.get(20, TimeUnit.SECONDS);
        for (var one : all) {
            one.get(20, TimeUnit.SECONDS).release();
        }
        assertFalse(hold.isLost() || plain.isLost());
        hold.release();
        plain.release();
        server.awaitNothingLeft();
    }

    @Test
    void aHoldOutlivesTheProgramsTimeOut() throws Exception {
        RedisClient client = RedisClient.create(uri(server.port));
        client.setOptions(tight(ClientOptions.builder()).build());
        try (var locks = Locks.over(client)) {
            outlivesAPause(locks, server);
        }
        client.shutdown(0, 0, TimeUnit.SECONDS);
    }

    @Test
    void aConnectionIsMadeToAServerThatIsSlow() throws Exception {
        try (var own = new Server()) {
            RedisClient client = RedisClient.create(uri(own.port));
            client.setOptions(tight(ClientOptions.builder()).build());
            try (var locks = Locks.over(client)) {
                own.signal("STOP");
                var first = locks.acquireAsync(Request.of(key).waiting(LONG));
                Thread.sleep(700);
                own.signal("CONT");
                first.get(20, TimeUnit.SECONDS).release();
                assertEquals(1, own.named(Own.NAME).size(), "it was connected again");
            }
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    @Test
    void aHoldOutlivesTheProgramsTimeOutInACluster() throws Exception {
        try (var cluster = new TestCluster()) {
            var client = RedisClusterClient.create(uri(cluster.nodes.get(0).port));
            client.setOptions((ClusterClientOptions) tight(ClusterClientOptions.builder()).build());
            try (var locks = Locks.over(client)) {
                key = "{b}" + key;
                outlivesAPause(locks, cluster.nodes.get(0));
            }
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    @Test
    void theProgramMayShutDownItsClient() throws Exception {
        RedisClient client = Server.client(server.port);
        try (var locks = Locks.over(client)) {
            Hold hold = locks.acquire(key, LONG);
            client.shutdown(0, 0, TimeUnit.SECONDS);
            hold.renew(LONG);
            hold.release();
            locks.acquire(key, LONG).release();
        }
    }

    /** More than a socket allows, and Lettuce. */
    @Test
    void aTimeOutMayBeAsLongAsYouLike() throws Exception {
        RedisClient client = Server.client(server.port);
        try (var locks = Locks.over(client, Duration.ofDays(100_000_000))) {
            locks.acquire(key, Duration.ofDays(100_000_000)).release();
        } finally {
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    @Test
    void aClientWithoutAnAddressIsNone() {
        var client = RedisClient.create();
        var error = assertThrows(IllegalArgumentException.class, () -> Locks.over(client));
        assertTrue(error.getMessage().contains("no address"), error.getMessage());
        client.shutdown(0, 0, TimeUnit.SECONDS);
    }

    @Test
    void theConnectionShowsWhoItIs() throws Exception {
        String pom = Files.readString(Path.of("pom.xml"));
        assertTrue(pom.contains("<artifactId>rlock-client</artifactId>\n  <version>" + Locks.VERSION + "</version>"));
        try (var others = LocksTest.through(server.port)) {
            others.locks().acquire(key, LONG).release();
            var mine = server.named("rlock-java-" + Locks.VERSION);
            assertFalse(mine.isEmpty());
        }
        try (var cluster = new TestCluster()) {
            try (var locks = cluster.locks()) {
                locks.acquire("b", LONG).release();
                assertFalse(cluster.nodes.get(0).named(Own.NAME).isEmpty());
            }
        }
    }

    /** What two processes that start from one image would count up alike. */
    @Test
    void noOwnerIsMadeOfAnother() throws Exception {
        var owners = new ArrayList<String>();
        for (int i = 0; i < 3; i++) {
            var job = locks.job();
            try (Hold hold = locks.acquire(key, LONG)) {
                owners.add(hold.owner());
            }
            try (Hold hold = locks.acquire(Request.of(key).job(job)); Hold two = locks.acquire(Request.of(key + 2).job(job))) {
                assertEquals(job.owner(), hold.owner());
                assertEquals(hold.owner(), two.owner());
                owners.add(hold.owner());
            }
            var lock = locks.lock(key);
            lock.lock();
            owners.add(lock.hold().orElseThrow().owner());
            lock.unlock();
        }
        for (String one : owners) {
            for (String other : owners.subList(owners.indexOf(one) + 1, owners.size())) {
                assertNotEquals(random(one).get(0), random(other).get(0));
                assertNotEquals(random(one).get(1), random(other).get(1));
            }
        }
    }

    /** Both halves of the UUID. */
    private static List<String> random(String owner) {
        String uuid = owner.substring(owner.lastIndexOf(':') + 1);
        return List.of(uuid.substring(0, 18), uuid.substring(19));
    }
}

package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Slots that move, and nodes that fail over. */
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ClusterTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    private final TestCluster cluster = new TestCluster();

    @AfterEach
    void stop() {
        cluster.close();
    }

    private static Request plain(String key) {
        return Request.of(key).watchdog(false).lease(Duration.ofMinutes(1));
    }

    private static String channel(Server node) {
        return ((List<?>) node.say("PUBSUB SHARDCHANNELS")).stream().findFirst().map(Object::toString).orElse("");
    }

    private static String connection(Server node) {
        return node.say("CLIENT LIST TYPE pubsub").toString().split(" ")[0];
    }

    @Test
    void aSessionTakesAnotherChannelWhenTheSlotOfItsOwnMoves() throws Exception {
        Server node = cluster.nodes.get(0);
        Locks locks = cluster.locks();
        Hold watched = locks.acquire("{b}watched", LONG);
        Hold plain = locks.acquire(plain("{b}plain"));
        node.say("RLOCK.ACQUIRE {b}taken other 60000");
        var wait = locks.acquireAsync(Request.of("{b}taken").waitingForEver());
        node.awaitWaiters("{b}taken", 1);
        String connection = connection(node);
        for (int to : List.of(1, 2, 1)) {
            String channel = channel(node);
            cluster.move(node.say("CLUSTER KEYSLOT " + channel), node, cluster.nodes.get(to));
            Server.await("another channel", () -> !channel(node).isEmpty() && !channel(node).equals(channel));
            node.awaitWaiters("{b}taken", 1);
        }
        assertEquals(connection, connection(node));
        assertFalse(watched.isLost());
        assertFalse(plain.isLost());
        node.say("RLOCK.RELEASE {b}taken other");
        wait.get(20, TimeUnit.SECONDS).release();
        node.say("RLOCK.FORCE {b}watched");
        assertEquals("forced", WithServer.reason(watched));
        node.say("RLOCK.FORCE {b}plain");
        assertEquals("forced", WithServer.reason(plain));
    }

    @Test
    void whatIsHeldInASlotThatMovesIsLostAndItsWaitsGoOn() throws Exception {
        Server node = cluster.nodes.get(0);
        Server other = cluster.nodes.get(1);
        Hold held = cluster.locks().acquire("b", LONG);
        var wait = cluster.locks().acquireAsync(Request.of("b").waitingForEver());
        node.awaitWaiters("b", 1);
        cluster.move(node.say("CLUSTER KEYSLOT b"), node, other);
        assertEquals("moved", WithServer.reason(held));
        Hold hold = wait.get(20, TimeUnit.SECONDS);
        assertFalse(other.isFree("b"));
        hold.release();
        other.awaitFree("b");
    }

    @Test
    void aReplicaTakesOver() throws Exception {
        failOver((master, replica) -> replica.say("CLUSTER FAILOVER TAKEOVER"));
    }

    @Test
    void aMasterIsKilled() throws Exception {
        failOver((master, replica) -> master.kill());
    }

    private void failOver(BiConsumer<Server, Server> fail) throws Exception {
        Server master = cluster.nodes.get(2);
        Server replica = cluster.replicaOf(master);
        Locks locks = cluster.locks();
        Hold lost = locks.acquire("a", LONG);
        Hold stays = locks.acquire("b", LONG);
        Hold plain = locks.acquire(plain("{a}plain"));
        var wait = cluster.locks().acquireAsync(Request.of("a").waitingForEver());
        master.awaitWaiters("a", 1);
        Server.await("the replica to have it all", () -> replica.say("DBSIZE").equals(master.say("DBSIZE")));
        fail.accept(master, replica);
        assertTrue(Set.of("connection", "demoted").contains(WithServer.reason(lost)));
        Hold hold = wait.get(40, TimeUnit.SECONDS);
        assertTrue(hold.token() > lost.token());
        assertFalse(replica.isFree("a"));
        hold.release();
        stays.renew(LONG);
        stays.release();
        if (!plain.isLost()) { // the old master may have notified its end
            plain.renew(LONG);
            replica.say("RLOCK.FORCE {a}plain");
            assertEquals("forced", WithServer.reason(plain));
        }
    }
}

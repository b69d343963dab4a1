package dev.rlock;

import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Three nodes with a third of the slots each: "b" is on the first, "c" and "a" on the others. */
final class TestCluster implements AutoCloseable {
    final List<Server> nodes = new ArrayList<>();
    private final List<Runnable> ends = new ArrayList<>();

    TestCluster() {
        for (String slots : List.of("0 5460", "5461 10922", "10923 16383")) {
            Server node = add();
            node.say("CLUSTER ADDSLOTSRANGE " + slots);
            node.say("CLUSTER SET-CONFIG-EPOCH " + nodes.size());
            meet(node);
        }
        agree();
    }

    private Server add() {
        var node = new Server(
                "--cluster-enabled", "yes", "--cluster-node-timeout", "5000",
                "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0");
        nodes.add(node);
        return node;
    }

    private void meet(Server node) {
        nodes.get(0).say("CLUSTER MEET 127.0.0.1 " + node.port);
    }

    /** Until all nodes know of all. */
    private void agree() {
        for (Server node : nodes) {
            Server.await("the cluster", () -> {
                var info = node.say("CLUSTER INFO").toString();
                return info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:" + nodes.size() + "\r");
            });
        }
    }

    Server replicaOf(Server master) {
        Server replica = add();
        meet(replica);
        agree();
        replica.say("CLUSTER REPLICATE " + master.say("CLUSTER MYID"));
        Server.await("the replica", () -> replica.say("INFO replication").toString().contains("master_link_status:up"));
        return replica;
    }

    Locks locks() {
        var client = RedisClusterClient.create(RedisURI.create("127.0.0.1", nodes.get(0).port));
        var locks = Locks.over(client);
        ends.add(() -> {
            locks.close();
            client.shutdown(0, 0, TimeUnit.SECONDS);
        });
        return locks;
    }

    /** As resharding does it. */
    void move(Object slot, Server from, Server to) {
        to.say("CLUSTER SETSLOT " + slot + " IMPORTING " + from.say("CLUSTER MYID"));
        from.say("CLUSTER SETSLOT " + slot + " MIGRATING " + to.say("CLUSTER MYID"));
        for (Object key : (List<?>) from.say("CLUSTER GETKEYSINSLOT " + slot + " 100")) {
            from.say("MIGRATE 127.0.0.1 " + to.port + " " + key + " 0 5000");
        }
        for (Server node : List.of(to, from)) {
            node.say("CLUSTER SETSLOT " + slot + " NODE " + to.say("CLUSTER MYID"));
        }
    }

    @Override
    public void close() {
        ends.forEach(Runnable::run);
        nodes.forEach(Server::close);
    }
}

package dev.rlock;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ScheduledExecutorService;

/**
 * A session for each node. What has no node that is known and answers is in {@code limbo}: a
 * session that never connects, and has the slots read again instead.
 */
final class Cluster implements Router {
    private final RedisClusterClient client;
    /** Connects to single nodes, with the resources and options of the cluster's client. */
    private final RedisClient nodes;
    private final ScheduledExecutorService timer;
    private final long timeout;
    private final Object lock = new Object();
    private final Map<RedisURI, Session> sessions = new HashMap<>();
    private final Session limbo;
    /** Whether the slots were read once. */
    private volatile boolean known;

    Cluster(RedisClusterClient client, ScheduledExecutorService timer, long timeout) {
        this.client = client;
        this.timer = timer;
        this.timeout = timeout;
        nodes = RedisClient.create(client.getResources());
        nodes.setOptions(client.getOptions());
        limbo = new Session(this, new Reader(), timer, timeout);
    }

    /** Reads the slots. */
    private final class Reader implements Connector {
        @Override
        public StatefulRedisPubSubConnection<String, String> subscriber() {
            client.refreshPartitions();
            known = true;
            throw new RedisException("the node does not answer");
        }

        @Override
        public StatefulRedisConnection<String, String> plain() {
            throw new IllegalStateException();
        }
    }

    /** Connects to one node. */
    private final class Node implements Connector {
        private final RedisURI uri;

        Node(RedisURI uri) {
            this.uri = uri;
        }

        @Override
        public StatefulRedisPubSubConnection<String, String> subscriber() {
            return nodes.connectPubSub(StringCodec.UTF8, uri);
        }

        @Override
        public StatefulRedisConnection<String, String> plain() {
            return nodes.connect(StringCodec.UTF8, uri);
        }

        @Override
        public boolean sharded() {
            return true;
        }

        @Override
        public String otherChannel() {
            client.refreshPartitions();
            return channel();
        }

        /** One in a slot of the node; if it has none it refuses, and the slots are read again. */
        @Override
        public String channel() {
            var node = client.getPartitions().getPartition(uri.getHost(), uri.getPort());
            String channel;
            do {
                channel = Connector.super.channel();
            } while (node != null
                    && !node.getSlots().isEmpty()
                    && !node.hasSlot(SlotHash.getSlot(channel)));
            return channel;
        }
    }

    private synchronized Session at(String key) {
        RedisClusterNode node =
                known ? client.getPartitions().getMasterBySlot(SlotHash.getSlot(key)) : null;
        return node == null
                ? limbo
                : sessions.computeIfAbsent(
                        node.getUri(), uri -> new Session(this, new Node(uri), timer, timeout));
    }

    @Override
    public void ask(Asking asking) {
        at(asking.request.key()).requests.ask(asking);
    }

    @Override
    public Object lock() {
        return lock;
    }

    @Override
    public boolean moves() {
        return true;
    }

    @Override
    public void moved(Asking asking) {
        timer.execute(() -> limbo.requests.ask(asking));
    }

    @Override
    public void moved(Errand errand) {
        timer.execute(() -> limbo.adopt(errand));
    }

    @Override
    public void unreachable(Session session) {
        timer.execute(() -> {
            List<Asking> askings;
            List<Errand> errands;
            synchronized (session.lock) {
                askings = session.requests.takeUnsent();
                errands = session.takeErrands();
            }
            for (Errand errand : errands) {
                (session == limbo ? at(errand.key) : limbo).adopt(errand);
            }
            for (Asking asking : askings) {
                (session == limbo ? at(asking.request.key()) : limbo).requests.ask(asking);
            }
        });
    }

    @Override
    public synchronized List<Session> sessions() {
        var all = new ArrayList<>(sessions.values());
        all.add(limbo);
        return all;
    }

    @Override
    public void close() {
        // Its connections end with the sessions; the resources are the cluster client's.
        nodes.shutdownAsync();
    }
}

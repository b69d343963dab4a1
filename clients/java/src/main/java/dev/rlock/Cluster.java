package dev.rlock;

import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
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
    private final Own own;
    private final ScheduledExecutorService timer;
    private final long timeout;
    private final Object lock = new Object();
    private final Places places = new Places();
    private final Map<RedisURI, Session> sessions = new HashMap<>();
    private final Session limbo;
    /** Whether the slots were read once. */
    private volatile boolean known;

    Cluster(Own own, ScheduledExecutorService timer, long timeout) {
        this.own = own;
        this.timer = timer;
        this.timeout = timeout;
        limbo = new Session(this, new Reader(), timer, timeout);
    }

    /** Reads the slots. */
    private final class Reader extends Connector {
        Reader() {
            super(null, null, own.known);
        }

        @Override
        StatefulRedisPubSubConnection<String, String> subscriber() {
            own.readSlots();
            Cluster.this.known = true;
            throw new RedisException("the node does not answer");
        }
    }

    /** Connects to one node. */
    private final class Node extends Connector {
        private final RedisURI uri;

        Node(RedisURI uri) {
            super(own.client, own.node(uri), own.known);
            this.uri = uri;
        }

        @Override
        boolean sharded() {
            return true;
        }

        @Override
        String otherChannel() {
            own.readSlots();
            return channel();
        }

        /** One in a slot of the node; if it has none it refuses, and the slots are read again. */
        @Override
        String channel() {
            var node = own.cluster.getPartitions().getPartition(uri.getHost(), uri.getPort());
            String channel;
            do {
                channel = super.channel();
            } while (node != null
                    && !node.getSlots().isEmpty()
                    && !node.hasSlot(SlotHash.getSlot(channel)));
            return channel;
        }
    }

    private synchronized Session at(String key) {
        RedisClusterNode node =
                known ? own.cluster.getPartitions().getMasterBySlot(SlotHash.getSlot(key)) : null;
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
    public Places places() {
        return places;
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
    public void moved(PendingCommand pending) {
        timer.execute(() -> limbo.pending.adopt(pending));
    }

    @Override
    public void unreachable(Session session) {
        timer.execute(() -> {
            List<Asking> askings;
            List<PendingCommand> pending;
            synchronized (session.lock) {
                askings = session.requests.takeUnsent();
                pending = session.pending.takeAll();
            }
            for (PendingCommand one : pending) {
                (session == limbo ? at(one.key) : limbo).pending.adopt(one);
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
}

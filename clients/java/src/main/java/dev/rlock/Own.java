package dev.rlock;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.ClientOptions.DisconnectedBehavior;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.metrics.CommandLatencyRecorder;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.resource.ClientResources;
import java.lang.reflect.InaccessibleObjectException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Clients of our own, with the addresses, the TLS and the credentials of the program's. Its limits
 * are for its own commands: a time-out, a full queue or a reconnection would end holds. And its
 * callbacks run on its own client's threads, where they may block: ours only read.
 */
final class Own implements AutoCloseable {
    static final String NAME = "rlock-java-" + Locks.VERSION;

    private final Duration timeout;
    private final List<Address> addresses = new ArrayList<>();
    private final ClientResources resources;
    private final ClientOptions options;
    /** Null where there is no cluster. */
    final RedisClusterClient cluster;
    /** Connects to any address. */
    final RedisClient client;
    final Known known;

    private Own(
            List<RedisURI> theirs, boolean isCluster, ClientOptions options, ClientResources resources, long timeout, Known known) {
        this.known = known;
        this.timeout = Duration.ofMillis(Math.min(timeout, Integer.MAX_VALUE)); // more is too long for a socket
        this.options = limits(options);
        theirs.forEach(uri -> addresses.add(new Address(uri, this.timeout)));
        // The least of each, and none of them starts before it has something to do.
        this.resources = ClientResources.builder()
                .ioThreadPoolSize(2)
                .computationThreadPoolSize(2)
                .socketAddressResolver(resources.socketAddressResolver())
                .addressResolverGroup(resources.addressResolverGroup())
                .nettyCustomizer(resources.nettyCustomizer())
                .commandLatencyRecorder(CommandLatencyRecorder.disabled())
                .build();
        client = RedisClient.create(this.resources);
        client.setOptions(this.options);
        cluster = isCluster ? cluster() : null;
    }

    static Own of(RedisClient client, long timeout, Known known) {
        RedisURI uri = hidden(RedisClient.class, "redisURI", client);
        return new Own(List.of(uri), false, client.getOptions(), client.getResources(), timeout, known);
    }

    static Own of(RedisClusterClient client, long timeout, Known known) {
        Iterable<RedisURI> uris = hidden(RedisClusterClient.class, "initialUris", client);
        var list = new ArrayList<RedisURI>();
        uris.forEach(list::add);
        return new Own(list, true, client.getOptions(), client.getResources(), timeout, known);
    }

    /** Lettuce has no other way to ask its clients for their addresses. */
    @SuppressWarnings("unchecked")
    private static <T> T hidden(Class<?> type, String field, Object client) {
        try {
            var found = type.getDeclaredField(field);
            found.setAccessible(true);
            return (T) found.get(client);
        } catch (ReflectiveOperationException | InaccessibleObjectException error) {
            throw new IllegalArgumentException("the address of the client cannot be read: take lettuce-core 7.6", error);
        }
    }

    private ClientOptions limits(ClientOptions theirs) {
        return theirs.mutate()
                .protocolVersion(ProtocolVersion.RESP3)
                .autoReconnect(false)
                .disconnectedBehavior(DisconnectedBehavior.REJECT_COMMANDS)
                .requestQueueSize(Integer.MAX_VALUE)
                .timeoutOptions(TimeoutOptions.create())
                .socketOptions(theirs.getSocketOptions().mutate().connectTimeout(timeout).build())
                .build();
    }

    private RedisClusterClient cluster() {
        var own = RedisClusterClient.create(resources, addresses.stream().map(Address::known).toList());
        own.setOptions(ClusterClientOptions.builder(options)
                .topologyRefreshOptions(ClusterTopologyRefreshOptions.create())
                .build());
        return own;
    }

    /** To the one server. */
    Connector connector() {
        return new Connector(client, addresses.get(0), known);
    }

    Address node(RedisURI uri) {
        return addresses.get(0).node(uri);
    }

    void readSlots() {
        addresses.forEach(Address::uri);
        cluster.refreshPartitions();
    }

    /** Its connections end with the sessions. */
    @Override
    public void close() {
        var clients = cluster == null
                ? client.shutdownAsync()
                : CompletableFuture.allOf(client.shutdownAsync(), cluster.shutdownAsync());
        clients.whenComplete((nothing, error) -> resources.shutdown(0, timeout.toMillis(), TimeUnit.MILLISECONDS));
    }
}

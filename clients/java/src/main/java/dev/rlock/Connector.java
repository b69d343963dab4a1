package dev.rlock;

import io.lettuce.core.RedisClient;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;

/** Opens connections to one server. Its methods block. */
class Connector {
    private final RedisClient client;
    private final Address to;
    final Known known;

    Connector(RedisClient client, Address to, Known known) {
        this.known = known;
        this.client = client;
        this.to = to;
    }

    StatefulRedisPubSubConnection<String, String> subscriber() {
        return client.connectPubSub(StringCodec.UTF8, to.uri());
    }

    StatefulRedisConnection<String, String> plain() {
        return client.connect(StringCodec.UTF8, to.uri());
    }

    /** A channel for a new connection, which nobody can guess. */
    String channel() {
        return "rlock:" + UUID.randomUUID();
    }

    /** Another one, in the place of one whose slot has moved. */
    String otherChannel() {
        return channel();
    }

    boolean sharded() {
        return false;
    }

    /** Runs it in a thread of its own, for it blocks: on what gives the credentials, if not on the server. */
    static <T> CompletableFuture<T> inThread(Callable<T> connect) {
        var result = new CompletableFuture<T>();
        try {
            CallbackExecutor.daemon("rlock-connect", () -> {
                try {
                    result.complete(connect.call());
                } catch (Throwable error) {
                    result.completeExceptionally(error);
                }
            }).start();
        } catch (Throwable error) { // there is no thread now
            result.completeExceptionally(error);
        }
        return result;
    }
}

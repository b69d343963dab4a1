package dev.rlock;

import io.lettuce.core.RedisClient;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;

/** Opens connections to one server. Its methods block. */
interface Connector {
    StatefulRedisPubSubConnection<String, String> subscriber();

    StatefulRedisConnection<String, String> plain();

    /** A channel for a new connection, which nobody can guess. */
    default String channel() {
        return "rlock:" + UUID.randomUUID();
    }

    /** Another one, in the place of one whose slot has moved. */
    default String otherChannel() {
        return channel();
    }

    default boolean sharded() {
        return false;
    }

    /** To the address and with the credentials that the client was made with. */
    static Connector of(RedisClient client) {
        return new Connector() {
            @Override
            public StatefulRedisPubSubConnection<String, String> subscriber() {
                return client.connectPubSub();
            }

            @Override
            public StatefulRedisConnection<String, String> plain() {
                return client.connect();
            }
        };
    }

    /** Runs it in a thread of its own: there is no way to connect to a client's own address that does not block. */
    static <T> CompletableFuture<T> inThread(Callable<T> connect) {
        var result = new CompletableFuture<T>();
        var thread = new Thread(() -> {
            try {
                result.complete(connect.call());
            } catch (Exception | LinkageError error) {
                result.completeExceptionally(error);
            }
        }, "rlock-connect");
        thread.setDaemon(true);
        thread.start();
        return result;
    }
}

package dev.rlock;

import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisConnectionStateAdapter;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** One connection, used once: when it breaks it stays broken. */
final class Wire {
    private final StatefulRedisConnection<String, String> connection;
    private final AtomicBoolean broken = new AtomicBoolean();
    final CompletableFuture<Void> ended = new CompletableFuture<>();
    private final Consumer<Wire> onBreak;
    final long opened = System.nanoTime();
    private boolean sharded;
    /** On which the server notifies of its waits and holds. */
    private volatile String channel;

    /** @param onBreak called once, by any thread */
    Wire(StatefulRedisConnection<String, String> connection, Consumer<Wire> onBreak) {
        this.connection = connection;
        this.onBreak = onBreak;
        // Lettuce would connect again and send again what had no reply; but waits and holds
        // would not come back, so a connection that broke is closed.
        connection.addListener(new RedisConnectionStateAdapter() {
            @Override
            public void onRedisDisconnected(RedisChannelHandler<?, ?> handler) {
                close();
            }
        });
        if (!connection.isOpen()) {
            close();
        }
    }

    /** Subscribes the session to its channel; completes when it is subscribed. */
    static CompletableFuture<Wire> subscribed(
            StatefulRedisPubSubConnection<String, String> connection,
            String channel,
            boolean sharded,
            Session session) {
        var wire = new Wire(connection, session::broke);
        wire.sharded = sharded;
        connection.addListener(new RedisPubSubAdapter<String, String>() {
            @Override
            public void message(String on, String message) {
                if (on.equals(wire.channel)) {
                    session.notified(wire, message);
                }
            }

            @Override
            public void smessage(String on, String message) {
                message(on, message);
            }

            @Override
            public void sunsubscribed(String on, long count) {
                if (on.equals(wire.channel)) { // its slot is elsewhere now
                    session.lostChannel(wire);
                }
            }
        });
        return wire.subscribe(channel)
                .whenComplete((nothing, error) -> {
                    if (error != null) {
                        wire.close();
                    }
                })
                .thenApply(nothing -> wire);
    }

    CompletableFuture<Void> subscribe(String channel) {
        this.channel = channel;
        var commands = ((StatefulRedisPubSubConnection<String, String>) connection).async();
        return (sharded ? commands.ssubscribe(channel) : commands.subscribe(channel)).toCompletableFuture();
    }

    String channel() {
        return channel;
    }

    CompletableFuture<Object> call(Command command) {
        var args = new CommandArgs<>(StringCodec.UTF8);
        command.words().forEach(word -> args.add(word.toString()));
        return connection.async().dispatch(new Name(command.name()), new Reply(), args).toCompletableFuture();
    }

    boolean isBroken() {
        return broken.get();
    }

    void close() {
        if (broken.compareAndSet(false, true)) {
            ((StatefulConnection<?, ?>) connection).closeAsync().whenComplete((nothing, error) -> ended.complete(null));
            onBreak.accept(this);
        }
    }

    /** A command, before it is sent. */
    record Command(String name, List<Object> words) {
        static Command of(String name, Object... words) {
            return new Command(name, List.of(words));
        }
    }

    private record Name(String word) implements ProtocolKeyword {
        @Override
        public byte[] getBytes() {
            return word.getBytes(StandardCharsets.US_ASCII);
        }

        @Override
        public String toString() {
            return word;
        }
    }
}

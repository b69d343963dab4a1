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
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** One connection, used once: when it breaks it stays broken. */
final class Wire {
    private final StatefulRedisConnection<String, String> connection;
    private final AtomicBoolean broken = new AtomicBoolean();
    private final Consumer<Wire> onBreak;
    final long opened = System.nanoTime();

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

    /** Hears of the messages on its channel; completes when it does. */
    static CompletableFuture<Wire> subscribed(
            StatefulRedisPubSubConnection<String, String> connection,
            String channel,
            boolean sharded,
            BiConsumer<Wire, String> ear,
            Consumer<Wire> onBreak) {
        var wire = new Wire(connection, onBreak);
        connection.addListener(new RedisPubSubAdapter<String, String>() {
            @Override
            public void message(String on, String message) {
                if (on.equals(channel)) {
                    ear.accept(wire, message);
                }
            }

            @Override
            public void smessage(String on, String message) {
                message(on, message);
            }

            @Override
            public void sunsubscribed(String on, long count) {
                wire.close(); // its slot is elsewhere now, and nothing would be heard any more
            }
        });
        var subscribed = sharded ? connection.async().ssubscribe(channel) : connection.async().subscribe(channel);
        return subscribed.toCompletableFuture()
                .whenComplete((nothing, error) -> {
                    if (error != null) {
                        wire.close();
                    }
                })
                .thenApply(nothing -> wire);
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
            ((StatefulConnection<?, ?>) connection).closeAsync();
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

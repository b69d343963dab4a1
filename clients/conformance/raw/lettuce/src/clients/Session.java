package clients;

import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisConnectionStateAdapter;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** Locks by a connection of their own, for all threads of a process. */
final class Session implements AutoCloseable {
    private final String channel = "rlock:" + UUID.randomUUID();
    private final AtomicLong tags = new AtomicLong();
    /** By tag: what the server notifies of a request, and of its hold. */
    private final Map<String, Consumer<String[]>> notified = new ConcurrentHashMap<>();
    private final StatefulRedisPubSubConnection<String, String> connection;

    // In docs/clients.md:
    Session(RedisClient client) {
        connection = client.connectPubSub();
        connection.addListener(new RedisPubSubAdapter<>() {
            @Override
            public void message(String on, String message) {
                onMessage(message.split(" ", 3));
            }
        });
        // It would connect again and send again what had no reply, but the waits and holds
        // would not come back.
        connection.addListener(new RedisConnectionStateAdapter() {
            @Override
            public void onRedisDisconnected(RedisChannelHandler<?, ?> handler) {
                notified.keySet().forEach(tag -> onMessage(new String[] {"lost", tag, "connection"}));
                connection.closeAsync();
            }
        });
        connection.sync().subscribe(channel);
    }

    // So far.

    CompletableFuture<Object> call(String name, Object... words) {
        var args = new CommandArgs<>(StringCodec.UTF8);
        for (Object word : words) {
            args.add(word.toString());
        }
        return connection.async().dispatch(new Named(name), new Reply(), args).toCompletableFuture();
    }

    /** The token, or null after {@code wait} ms. {@code lost} is notified of the hold's loss. */
    CompletableFuture<Long> acquire(
            String key, String owner, long lease, long wait, Consumer<String> lost, Object... more) {
        String tag = Long.toString(tags.incrementAndGet());
        var end = new CompletableFuture<Long>();
        notified.put(tag, words -> {
            switch (words[0]) {
                case "granted" -> end.complete(Long.valueOf(words[2]));
                case "timeout" -> end.complete(null);
                default -> end.completeExceptionally(new IllegalStateException(words[2]));
            }
            if (words[0].equals("lost")) {
                lost.accept(words[2]);
            }
        });
        var words = new ArrayList<Object>(List.of(
                key, owner, lease, "QUEUE", wait, "NOTIFY", channel, tag, "ONCE"));
        words.addAll(List.of(more));
        call("RLOCK.ACQUIRE", words.toArray()).whenComplete((reply, error) -> {
            if (error != null) {
                end.completeExceptionally(error);
            } else if (reply instanceof Long token) {
                end.complete(token);
            } // else QUEUED, which Lettuce takes for MULTI's and gives as null
        });
        end.whenComplete((token, error) -> {
            if (end.isCancelled()) {
                call("RLOCK.CANCEL", key, owner).thenAccept(ended -> {
                    if (ended.equals(0L)) {
                        call("RLOCK.RELEASE", key, owner, "IFHELD"); // the grant had gone out
                    }
                });
            }
        });
        return end;
    }

    private void onMessage(String[] words) {
        var notify = words[0].equals("granted") ? notified.get(words[1]) : notified.remove(words[1]);
        if (notify != null) {
            notify.accept(words);
        }
    }

    @Override
    public void close() {
        connection.close();
    }

    /** A number, a text, or null. */
    static final class Reply extends CommandOutput<String, String, Object> {
        Reply() {
            super(StringCodec.UTF8, null);
        }

        @Override
        public void set(long number) {
            output = number;
        }

        @Override
        public void set(ByteBuffer bytes) {
            output = bytes == null ? null : codec.decodeValue(bytes);
        }
    }

    record Named(String name) implements ProtocolKeyword {
        @Override
        public byte[] getBytes() {
            return name.getBytes(StandardCharsets.US_ASCII);
        }
    }
}

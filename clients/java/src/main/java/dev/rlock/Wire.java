package dev.rlock;

import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisConnectionStateAdapter;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.RedisCommand;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** One connection, used once: when it breaks it stays broken. */
final class Wire {
    private final StatefulRedisConnection<String, String> connection;
    private final AtomicBoolean broken = new AtomicBoolean();
    final CompletableFuture<Void> ended = new CompletableFuture<>();
    private final Consumer<Wire> onBreak;
    final Moment opened = Moment.now();
    private boolean sharded;
    /** On which the server notifies of its waits and holds. */
    private volatile String channel;
    private volatile Speech speech;
    /** It does not know HEARTBEAT, or does not let us say it; under its session's lock. */
    private boolean deaf;
    /** The same of WANTED. */
    private boolean deafToWanted;
    private final Object writing = new Object();
    /** What is to go out in one write; null: each by itself. */
    private List<RedisCommand<String, String, ?>> together;

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

    /** Subscribes the session to its channel; completes when it is subscribed, and the backend is known. */
    static CompletableFuture<Wire> subscribed(
            StatefulRedisPubSubConnection<String, String> connection,
            String channel,
            Connector connector,
            Session session) {
        var wire = new Wire(connection, session::broke);
        wire.sharded = connector.sharded();
        connection.addListener(new RedisPubSubAdapter<String, String>() {
            @Override
            public void message(String on, String message) {
                if (on.equals(wire.channel)) {
                    session.notified(wire, message);
                } else if (wire.speech instanceof Plain plain) {
                    plain.heard(on);
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
                } else if (wire.speech instanceof Plain plain) {
                    plain.deafened(on);
                }
            }
        });
        var subscribed = wire.subscribe(channel).exceptionallyCompose(error -> {
            String refusal = Reply.refusal(Thrown.cause(error));
            boolean old = wire.sharded && refusal != null && refusal.startsWith("ERR unknown command");
            return CompletableFuture.failedFuture(old ? new RefusedException(Reply.NO_SHARDS) : error);
        });
        var backend = Finding.backend(wire, connector.known.module); // sent behind it, in the same round trip
        return subscribed
                .thenCompose(nothing -> backend)
                .whenComplete((found, error) -> {
                    if (error != null) {
                        wire.close();
                    }
                })
                .thenApply(found -> {
                    connector.known.is(found);
                    wire.speech = found == Backend.MODULE ? null : new Plain(session, wire, new Library(wire, found, wire.sharded));
                    return wire;
                });
    }

    CompletableFuture<Void> subscribe(String channel) {
        this.channel = channel;
        return hear(List.of(channel));
    }

    CompletableFuture<Void> hear(List<String> channels) {
        var commands = ((StatefulRedisPubSubConnection<String, String>) connection).async();
        var names = channels.toArray(String[]::new);
        return (sharded ? commands.ssubscribe(names) : commands.subscribe(names)).toCompletableFuture();
    }

    void hearNoMore(List<String> channels) {
        var commands = ((StatefulRedisPubSubConnection<String, String>) connection).async();
        var names = channels.toArray(String[]::new);
        if (sharded) {
            commands.sunsubscribe(names);
        } else {
            commands.unsubscribe(names);
        }
    }

    String channel() {
        return channel;
    }

    /** What takes the place of the module's commands where there is no module. */
    interface Speech {
        CompletableFuture<Object> call(Call call);
    }

    /** Null: the server has the module. */
    Plain plain() {
        return speech instanceof Plain plain ? plain : null;
    }

    /** Whether the server can be told how long this process may be silent, as far as is known. */
    boolean hearsPatience() {
        return plain() == null && !deaf;
    }

    void hearsNoPatience() {
        deaf = true;
    }

    /** Whether it can be asked to say that somebody waits for a hold, as far as is known. */
    boolean hearsWanted() {
        return plain() == null && !deafToWanted;
    }

    void hearsNoWanted() {
        deafToWanted = true;
    }

    /** Speaks as another connection to the same server does. */
    void speakAs(Wire other) {
        Plain plain = other.plain();
        speech = plain == null ? null : new Library(this, plain.backend(), sharded);
    }

    CompletableFuture<Object> call(Command command) {
        Speech by = speech;
        return by == null || command.call() == null ? send(command) : by.call(command.call());
    }

    CompletableFuture<Object> send(Command command) {
        var args = new CommandArgs<>(StringCodec.UTF8);
        command.words().forEach(word -> args.add(word.toString()));
        var said = new AsyncCommand<>(new io.lettuce.core.protocol.Command<>(new Name(command.name()), new Reply(), args));
        if (!isKept(said)) {
            connection.dispatch(said);
        }
        return said;
    }

    private boolean isKept(RedisCommand<String, String, Object> said) {
        synchronized (writing) {
            return together != null && together.add(said);
        }
    }

    /**
     * What is sent meanwhile goes out in one write.
     *
     * @param wire null: there is none
     */
    static <T> T inOneWrite(Wire wire, Supplier<T> calls) {
        if (wire == null) {
            return calls.get();
        }
        wire.keep();
        try {
            return calls.get();
        } finally {
            wire.sendKept();
        }
    }

    private void keep() {
        synchronized (writing) {
            together = new ArrayList<>();
        }
    }

    private void sendKept() {
        synchronized (writing) {
            var all = together;
            together = null;
            connection.dispatch(all);
        }
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

    /**
     * A command, before it is sent.
     *
     * @param call what says the same to the library; null: it is no command of the module
     */
    record Command(String name, List<Object> words, Call call) {
        static Command of(String name, Object... words) {
            return new Command(name, List.of(words), null);
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

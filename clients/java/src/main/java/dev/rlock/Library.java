package dev.rlock;

import dev.rlock.Wire.Command;
import io.lettuce.core.RedisCommandExecutionException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * The function library in the place of the module's commands, as functions or as a script, over
 * one connection. A server that has lost it is given it again, and all that it did not know then,
 * in order: nobody learns of that.
 */
final class Library implements Wire.Speech {
    private static final String NAME = "/dev/rlock/rlock.lua";
    /** So often it is loaded at once for one call, and then after a pause, in ms: others load it away. */
    private static final int AT_ONCE = 3;

    private static final long PAUSE = 100;

    private final Wire wire;
    final Backend backend;
    private final boolean sharded;
    private long calls;
    /** What waits until it is loaded, by the order in which it was called; null: nothing. */
    private TreeMap<Long, Called> waiting;

    private final class Called {
        final long number = ++calls;
        final Call call;
        final CompletableFuture<Object> answer = new CompletableFuture<>();
        int times;

        Called(Call call) {
            this.call = call;
        }
    }

    /**
     * @param backend not the module
     * @param sharded whether messages are, as in a cluster
     */
    Library(Wire wire, Backend backend, boolean sharded) {
        this.wire = wire;
        this.backend = backend;
        this.sharded = sharded;
    }

    private static String text() {
        try (InputStream in = Library.class.getResourceAsStream(NAME)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The first line is for functions. */
    private static String script() {
        String text = text();
        return text.substring(text.indexOf('\n') + 1);
    }

    /** By which the server knows the script. */
    private static final class Sha {
        static final String OF_SCRIPT = of(script());

        private static String of(String text) {
            try {
                var digest = MessageDigest.getInstance("SHA-1").digest(text.getBytes(StandardCharsets.UTF_8));
                return HexFormat.of().formatHex(digest);
            } catch (NoSuchAlgorithmException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    /** Whether the server has lost the library, or never had it: nothing was done. */
    static boolean isGone(String refusal) {
        return refusal.startsWith("NOSCRIPT") || refusal.startsWith("ERR Function not found");
    }

    /** Where it is there already, by another client or of another version, it stays. */
    static CompletableFuture<Object> loadFunctions(Wire wire) {
        return wire.send(Command.of("FUNCTION", "LOAD", text())).exceptionallyCompose(error -> {
            String refusal = Reply.refusal(Thrown.cause(error));
            return refusal != null && refusal.contains("already exists")
                    ? CompletableFuture.completedFuture(null)
                    : CompletableFuture.failedFuture(error);
        });
    }

    static CompletableFuture<Object> loadScript(Wire wire) {
        return wire.send(Command.of("SCRIPT", "LOAD", script()));
    }

    @Override
    public CompletableFuture<Object> call(Call call) {
        var called = new Called(call);
        synchronized (this) {
            if (waiting == null) {
                send(called);
            } else {
                await(called);
            }
        }
        return called.answer;
    }

    private void send(Called called) {
        called.times++;
        wire.send(command(called.call)).whenComplete((reply, error) -> {
            String refusal = Reply.refusal(error);
            if (refusal != null && isGone(refusal)) {
                synchronized (this) {
                    await(called);
                }
            } else if (refusal != null) {
                called.answer.completeExceptionally(isNoRight(refusal) ? new NoRight(refusal) : error);
            } else if (error != null) {
                called.answer.completeExceptionally(error);
            } else {
                called.answer.complete(reply);
            }
        });
    }

    private Command command(Call call) {
        var words = new ArrayList<Object>();
        words.add(backend == Backend.FUNCTIONS ? call.function() : Sha.OF_SCRIPT);
        var keys = call.keys();
        words.add(keys.size());
        words.addAll(keys);
        if (backend == Backend.SCRIPT) {
            words.addAll(sharded ? List.of("CLUSTER", call.function()) : List.of(call.function()));
        }
        words.addAll(call.words());
        return new Command(backend == Backend.FUNCTIONS ? "FCALL" : "EVALSHA", words, null);
    }

    private void await(Called called) {
        boolean first = waiting == null;
        if (first) {
            waiting = new TreeMap<>();
        }
        waiting.put(called.number, called);
        if (first) {
            (called.times < AT_ONCE ? load() : paused().thenCompose(nothing -> load()))
                    .whenComplete((name, error) -> loaded(error));
        }
    }

    private static CompletableFuture<Void> paused() {
        return new CompletableFuture<Void>().completeOnTimeout(null, PAUSE, TimeUnit.MILLISECONDS);
    }

    private CompletableFuture<Object> load() {
        return backend == Backend.FUNCTIONS ? loadFunctions(wire) : loadScript(wire);
    }

    private void loaded(Throwable error) {
        List<Called> all;
        synchronized (this) {
            all = List.copyOf(waiting.values());
            waiting = null;
            if (error == null) {
                all.forEach(this::send);
                return;
            }
        }
        all.forEach(called -> called.answer.completeExceptionally(Thrown.cause(error)));
    }

    /** What the library, or the server beneath it, says of a missing right in other words. */
    private static boolean isNoRight(String refusal) {
        return !refusal.startsWith("NOPERM")
                && (refusal.startsWith("ERR ACL failure")
                        || refusal.startsWith("ERR The user executing")
                        || refusal.contains("NOPERM"));
    }

    /** The same refusal by the code that it has elsewhere. */
    private static final class NoRight extends RedisCommandExecutionException {
        private static final long serialVersionUID = 1;

        NoRight(String refusal) {
            super("NOPERM " + refusal);
        }
    }
}

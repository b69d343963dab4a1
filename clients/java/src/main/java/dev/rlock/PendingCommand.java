package dev.rlock;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Commands that do no harm when they are said again: they are, on each new connection, until the
 * server has answered the last of them.
 */
class Errand {
    /** In this order they are said on a new connection. */
    enum Kind {
        /** It is said again if the server may not do it now: what is owed is not forgotten. */
        OWED,
        /** Has a hold told of. */
        TELLING,
        /** By the program; behind the one above, for a renewal is to be the last that sets the lease. */
        ASKED
    }

    final String key;
    final Kind kind;
    private final List<Wire.Command> commands;
    /** When the last of them was sent. */
    long sent;
    /** The server would not do it now. */
    boolean again;
    /** Nobody wants it any more. */
    boolean dropped;
    /** The reply to the last of them. */
    final CompletableFuture<Object> answer = new CompletableFuture<>();
    /** The program need not wait any longer: it was answered, or the connection broke. */
    final CompletableFuture<Void> over = new CompletableFuture<>();
    /** It will not be said again. What comes after it at the server may be asked for then. */
    final CompletableFuture<Void> taken = new CompletableFuture<>();

    Errand(String key, Kind kind, Wire.Command... commands) {
        this.key = key;
        this.kind = kind;
        this.commands = List.of(commands);
    }

    /** As they are said there. */
    List<Wire.Command> commands(Session on) {
        return commands;
    }
}

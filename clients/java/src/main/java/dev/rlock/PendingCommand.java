package dev.rlock;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Commands that still have to reach the server. They are idempotent: they are retried on each new
 * connection, until the server has answered the last of them.
 */
class PendingCommand {
    /** In this order they are sent on a new connection. */
    enum Kind {
        /** Releases, and the ends of waits: retried if the server refuses them for now. */
        CLEANUP,
        /** Asks for a plain hold on a new connection, and subscribes to its loss. */
        REGAIN,
        /** By the program; behind the one above, for it is to be the last that sets the lease. */
        RENEW
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
    /** It will not be retried. What comes after it at the server may be asked for then. */
    final CompletableFuture<Void> taken = new CompletableFuture<>();

    PendingCommand(String key, Kind kind, Wire.Command... commands) {
        this.key = key;
        this.kind = kind;
        this.commands = List.of(commands);
    }

    /** As they are sent there. */
    List<Wire.Command> commands(Session on) {
        return commands;
    }

    /** Whether the server has refused a word of it that it can do without. */
    boolean saysLess(Session on, Wire by, String refusal) {
        return false;
    }
}

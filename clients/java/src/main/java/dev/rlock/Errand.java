package dev.rlock;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Commands that do no harm when they are said again: they are, on each new connection, until the
 * server has answered the last of them.
 */
final class Errand {
    final String key;
    final List<Wire.Command> commands;
    /** It is said again if the server may not do it now: what is owed is not forgotten. */
    final boolean owed;
    /** When the last of them was sent. */
    long sent;
    /** The server would not do it now. */
    boolean again;
    /** The reply to the last of them. */
    final CompletableFuture<Object> answer = new CompletableFuture<>();
    /** The program need not wait any longer: it was answered, or the connection broke. */
    final CompletableFuture<Void> over = new CompletableFuture<>();

    Errand(String key, boolean owed, Wire.Command... commands) {
        this.key = key;
        this.owed = owed;
        this.commands = List.of(commands);
    }
}

package dev.rlock;

import dev.rlock.Wire.Command;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** Finds out which backend a server has, and loads the library where there is none. */
final class Finding {
    private Finding() {}

    /** Fails as the server's refusals do. */
    static CompletableFuture<Backend> backend(Wire wire, boolean onlyModule) {
        return isModule(wire).thenCompose(there -> {
            if (there) {
                return CompletableFuture.completedFuture(Backend.MODULE);
            } else if (onlyModule) {
                return CompletableFuture.failedFuture(new RefusedException(Reply.NO_MODULE));
            }
            return library(wire);
        });
    }

    static CompletableFuture<Boolean> isModule(Wire wire) {
        return or(
                wire.send(Command.of("COMMAND", "INFO", "RLOCK.ACQUIRE"))
                        .thenApply(reply -> ((List<?>) reply).stream().anyMatch(Objects::nonNull)),
                refusal -> byCalling(wire));
    }

    /** For a user who may not ask: the number of arguments is looked at before the rights. */
    private static CompletableFuture<Boolean> byCalling(Wire wire) {
        return or(wire.send(Command.of("RLOCK.ACQUIRE")).thenApply(reply -> true), refusal -> {
            if (refusal.startsWith("ERR wrong number")) {
                return CompletableFuture.completedFuture(true);
            }
            return isUnknown(refusal) ? CompletableFuture.completedFuture(false) : null;
        });
    }

    private static CompletableFuture<Backend> library(Wire wire) {
        return or(wire.send(Command.of("FCALL_RO", "rlock1_version", 0)).thenApply(version -> Backend.FUNCTIONS), refusal -> {
            if (Library.isGone(refusal)) {
                return or(Library.loadFunctions(wire).thenApply(name -> Backend.FUNCTIONS), why -> script(wire, why));
            }
            return script(wire, refusal);
        });
    }

    /** @param why there are no functions for us */
    private static CompletableFuture<Backend> script(Wire wire, String why) {
        if (!mayNot(why)) { // else it cannot be loaded now (OOM, say), and would be refused all the same
            return Reply.notNow(why) ? CompletableFuture.failedFuture(new RefusedException(why)) : null;
        }
        return or(Library.loadScript(wire).thenApply(sha -> Backend.SCRIPT), refusal ->
                mayNot(refusal) ? CompletableFuture.failedFuture(nothing(refusal)) : null);
    }

    private static RefusedException nothing(String refusal) {
        return new RefusedException(Reply.code(refusal)
                + " the server has no rlock module, and this user may not FUNCTION LOAD or SCRIPT LOAD: an administrator"
                + " runs redis-cli -x FUNCTION LOAD <rlock.lua, or gives the user +fcall +fcall_ro +function|load");
    }

    /** Whether the server does not know a command, or does not let us say it. */
    static boolean mayNot(String refusal) {
        return refusal.startsWith("NOPERM") || isUnknown(refusal);
    }

    private static boolean isUnknown(String refusal) {
        return refusal.startsWith("ERR unknown") || refusal.startsWith("ERR Unknown");
    }

    /** @param other what to do when the server refuses; null: that is the result */
    private static <T> CompletableFuture<T> or(CompletableFuture<T> reply, Function<String, CompletableFuture<T>> other) {
        return reply.exceptionallyCompose(error -> {
            String refusal = Reply.refusal(Thrown.cause(error));
            var next = refusal == null ? null : other.apply(refusal);
            return next == null ? CompletableFuture.failedFuture(error) : next;
        });
    }
}

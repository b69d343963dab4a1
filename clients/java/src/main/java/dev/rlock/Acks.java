package dev.rlock;

import dev.rlock.Wire.Command;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Asks whether replicas have a hold. WAIT goes by the last write of its own connection, and a
 * pushed grant is none: so over a second connection each hold is renewed, which changes nothing,
 * and then one WAIT is sent for all that ask at that moment.
 */
final class Acks {
    private final Connector connector;
    private List<Asked> asked = new ArrayList<>();
    private boolean busy;
    private Wire second;
    /** The connection to whose server the second one leads. */
    private Wire checked;

    Acks(Connector connector) {
        this.connector = connector;
    }

    private record Asked(Target target, CompletableFuture<Object> enough) {}

    /** Completes when enough replicas have it; with an {@link RlockException} if they have not. */
    synchronized CompletableFuture<Object> enough(Target target, Wire first) {
        var enough = new CompletableFuture<Object>();
        asked.add(new Asked(target, enough));
        next(first);
        return enough;
    }

    private synchronized void next(Wire first) {
        if (busy || asked.isEmpty()) {
            return;
        }
        busy = true;
        var round = asked;
        asked = new ArrayList<>();
        connected(first).thenCompose(wire -> round(wire, round)).whenComplete((count, error) -> {
            Throwable cause = error == null ? null : Hold.cause(error);
            round.forEach(one -> answer(one, count, cause));
            synchronized (this) {
                busy = false;
            }
            next(first);
        });
    }

    private static void answer(Asked one, Object count, Throwable error) {
        int wanted = one.target.request().acks;
        if (error != null) {
            one.enough.completeExceptionally(error);
        } else if (count instanceof Long many && many >= wanted) {
            one.enough.complete(many);
        } else {
            one.enough.completeExceptionally(
                    new RefusedException("NOREPLICAS " + count + " of " + wanted + " replicas have it"));
        }
    }

    private static CompletableFuture<Object> round(Wire wire, List<Asked> round) {
        int most = 0;
        long time = 0;
        for (Asked one : round) {
            var request = one.target.request();
            most = Math.max(most, request.acks);
            time = Math.max(time, request.acksTime);
            // A refusal of one is nobody else's.
            wire.call(one.target.renew(request.lease)).whenComplete((reply, error) -> {
                if (error != null) {
                    one.enough.completeExceptionally(error);
                }
            });
        }
        return wire.call(Command.of("WAIT", most, time));
    }

    /** The second connection, if it leads to the same run of the server as the first. */
    private CompletableFuture<Wire> connected(Wire first) {
        Wire old = second;
        if (old != null && !old.isBroken() && checked == first) {
            return CompletableFuture.completedFuture(old);
        }
        return Connector.inThread(() -> new Wire(connector.plain(), broken -> {})).thenCompose(wire -> {
            remember(wire, first);
            return run(wire).thenCombine(run(first), String::equals).thenApply(same -> {
                if (!same) {
                    wire.close();
                    throw new IllegalStateException("the address leads to two servers");
                }
                return wire;
            });
        });
    }

    private synchronized void remember(Wire wire, Wire first) {
        if (second != null) {
            second.close();
        }
        second = wire;
        checked = first;
        if (first.isBroken()) {
            wire.close();
        }
    }

    private static CompletableFuture<String> run(Wire wire) {
        return wire.call(Command.of("INFO", "server"))
                .thenApply(text -> text.toString().replaceFirst("(?s).*\\brun_id:(\\w+).*", "$1"));
    }

    /** The first connection is gone, and with it whoever asks. */
    synchronized void close() {
        if (second != null) {
            second.close();
            second = null;
        }
    }
}

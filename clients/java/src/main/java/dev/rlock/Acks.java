package dev.rlock;

import dev.rlock.Wire.Command;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;

/**
 * Asks whether replicas have a hold. WAIT goes by the last write of its own connection, and a
 * pushed grant is none: so over a second connection each hold is renewed, which changes nothing,
 * and then WAIT is sent for all that ask at that moment, again and again.
 */
final class Acks {
    /** Longer than this, in ms, no WAIT holds up that connection: who comes meanwhile is not kept. */
    private static final long SLICE = 100;

    private final Connector connector;
    private final ScheduledExecutorService timer;
    private final long timeout;
    private final Set<Asked> asked = new LinkedHashSet<>();
    private boolean busy;
    private Wire second;
    /** The connection to whose server the second one leads. */
    private Wire checked;

    Acks(Connector connector, ScheduledExecutorService timer, long timeout) {
        this.connector = connector;
        this.timer = timer;
        this.timeout = timeout;
    }

    private static final class Asked {
        final Target target;
        /** That it was granted on. */
        final Wire first;
        /** Asked without a lock of this class. */
        final BooleanSupplier unwanted;
        final CompletableFuture<Object> enough = new CompletableFuture<>();
        /** Over which it was renewed. */
        Wire by;
        long until;

        Asked(Target target, Wire first, BooleanSupplier unwanted) {
            this.target = target;
            this.first = first;
            this.unwanted = unwanted;
        }
    }

    /**
     * Completes when enough replicas have it; with an {@link RlockException} if they have not.
     *
     * @param unwanted nobody waits for it any more
     */
    CompletableFuture<Object> enough(Target target, Wire first, BooleanSupplier unwanted) {
        var one = new Asked(target, first, unwanted);
        synchronized (this) {
            asked.add(one);
        }
        next();
        return one.enough;
    }

    private void next() {
        for (var round = take(); !round.isEmpty(); round = take()) {
            var over = round.stream().filter(one -> one.unwanted.getAsBoolean()).collect(Collectors.toSet());
            over.forEach(one -> end(one, new CancellationException()));
            if (over.size() < round.size()) {
                serve(round.stream().filter(one -> !over.contains(one)).toList());
                return;
            }
            done();
        }
    }

    /** Nothing while a round is under way. */
    private synchronized List<Asked> take() {
        if (busy) {
            return List.of();
        }
        busy = !asked.isEmpty();
        return List.copyOf(asked);
    }

    private synchronized void done() {
        busy = false;
    }

    private void serve(List<Asked> round) {
        connected(round.get(round.size() - 1).first)
                .thenCompose(wire -> round(wire, round))
                .whenComplete((count, error) -> {
                    Throwable cause = error == null ? null : Thrown.cause(error);
                    round.forEach(one -> answer(one, count, cause));
                    done();
                    next();
                });
    }

    private void answer(Asked one, Object count, Throwable error) {
        int wanted = one.target.request().acks;
        var refused = Reply.refused(error);
        if (refused != null) {
            end(one, refused);
        } else if (error instanceof Second) {
            end(one, new RefusedException("NOREPLICAS nobody can say whether replicas have it: " + error.getMessage()));
        } else if (error != null) {
            end(one, error);
        } else if (count instanceof Long many && many >= wanted) {
            end(one, null);
        } else if (Millis.until(one.until) <= 0) {
            end(one, new RefusedException("NOREPLICAS " + count + " of " + wanted + " replicas have it"));
        }
    }

    private void end(Asked one, Throwable error) {
        synchronized (this) {
            asked.remove(one);
        }
        if (error == null) {
            one.enough.complete(one);
        } else {
            one.enough.completeExceptionally(error);
        }
    }

    /** One WAIT, until the easiest has what it needs. */
    private CompletableFuture<Object> round(Wire wire, List<Asked> round) {
        int least = Integer.MAX_VALUE;
        long time = SLICE;
        for (Asked one : round) {
            var request = one.target.request();
            if (one.by != wire) {
                one.by = wire;
                one.until = Millis.after(System.nanoTime(), request.acksTime);
                wire.call(one.target.renew(request.lease)).whenComplete((reply, error) -> {
                    if (Reply.refusal(error) != null) { // of one, and nobody else's
                        end(one, error);
                    }
                });
            }
            least = Math.min(least, request.acks);
            time = Math.min(time, Math.max(1, Millis.until(one.until)));
        }
        return answered(wire, bySecond(wire.call(Command.of("WAIT", least, time))), time);
    }

    /** The second connection cannot be opened, has broken or is silent: the first one, and all holds, stay. */
    private static final class Second extends Exception {
        private static final long serialVersionUID = 1;

        Second(Throwable cause) {
            super(Reply.root(cause).getMessage(), cause);
        }
    }

    private static <T> CompletableFuture<T> bySecond(CompletableFuture<T> reply) {
        return reply.exceptionallyCompose(error -> CompletableFuture.failedFuture(
                Reply.refusal(Thrown.cause(error)) != null ? error : new Second(error)));
    }

    /** What has no answer for too long is over, with that connection. */
    private <T> CompletableFuture<T> answered(Wire wire, CompletableFuture<T> reply, long millis) {
        var first = new CompletableFuture<T>();
        var silent = Late.after(timer, () -> {
            if (first.completeExceptionally(new Second(new TimeoutException("no answer to WAIT")))) {
                wire.close();
            }
        }, millis + timeout);
        reply.whenComplete((value, error) -> {
            silent.cancel(false);
            if (error == null) {
                first.complete(value);
            } else {
                first.completeExceptionally(error);
            }
        });
        return first;
    }

    /** The second connection, if it leads to the same run of the server as the first. */
    private CompletableFuture<Wire> connected(Wire first) {
        synchronized (this) {
            if (second != null && !second.isBroken() && checked == first) {
                return CompletableFuture.completedFuture(second);
            }
        }
        return bySecond(Connector.inThread(() -> new Wire(connector.plain(), broken -> {}))).thenCompose(wire -> {
            wire.speakAs(first);
            remember(wire, first);
            var both = bySecond(run(wire)).thenCombine(run(first), String::equals);
            return answered(wire, both, 0).thenApply(same -> {
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

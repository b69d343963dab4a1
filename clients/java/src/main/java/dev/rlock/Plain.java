package dev.rlock;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Stands between a session and its connection to a server without the module: it makes calls of the
 * library of each command, waits by trying, and notifies the session of how a wait ended as the
 * module would. It lasts as long as the connection. Its state is guarded by the session's lock.
 */
final class Plain implements Wire.Speech {
    /** So often, in ms, it asks whether the module has come. */
    private static final long ASK_AGAIN = 60_000;
    /** Says another time, for tests. */
    private static final String PROPERTY = "dev.rlock.askAgain";
    /** In a cluster: another node is, or will be, the one to ask. */
    private static final List<String> MOVES = List.of("MOVED", "ASK", "TRYAGAIN");

    private final Session session;
    private final Wire wire;
    private final Library library;
    private final Map<Line.Of, Line> lines = new HashMap<>();
    /** Of each channel that is subscribed to, those who listen. */
    private final Map<String, Set<Line>> ears = new HashMap<>();
    private Future<?> asking;

    Plain(Session session, Wire wire, Library library) {
        this.session = session;
        this.wire = wire;
        this.library = library;
    }

    Backend backend() {
        return library.backend;
    }

    // --- the module

    void start() {
        asking = session.timer.schedule(this::askAgain, Long.getLong(PROPERTY, ASK_AGAIN), TimeUnit.MILLISECONDS);
    }

    /** Where it has come, the next connection goes by it: holds and waits outlive this one. */
    private void askAgain() {
        Finding.isModule(wire).whenComplete((there, error) -> {
            synchronized (session.lock) {
                if (isOver()) {
                    return;
                } else if (error == null && there) {
                    session.breakLater();
                } else {
                    start();
                }
            }
        });
    }

    void stop() {
        if (asking != null) {
            asking.cancel(false);
        }
        lines.values().forEach(Line::stop);
    }

    boolean isOver() {
        return session.wire() != wire;
    }

    // --- calls

    @Override
    public CompletableFuture<Object> call(Call call) {
        if (call.millis() != 0) {
            begin(call);
            return CompletableFuture.completedFuture(null); // as QUEUED
        } else if (call.name().equals("cancel")) {
            tell(() -> {
                Line line = lines.get(Line.Of.call(call));
                return line == null ? null : line.cancel(call.target());
            });
            return CompletableFuture.completedFuture(1L);
        }
        return library.call(call);
    }

    private void begin(Call call) {
        synchronized (session.lock) {
            lines.computeIfAbsent(Line.Of.call(call), of -> new Line(this, of, session.router.places().take(of))).add(call);
        }
    }

    interface Outcome {
        /** What tells the session how the wait ended, or null: it goes on. */
        Runnable of(Object reply, Throwable error, long sent);
    }

    void tries(Call call, Outcome outcome) {
        long sent = System.nanoTime();
        library.call(call).whenComplete((reply, error) -> tell(() -> outcome.of(reply, error, sent)));
    }

    /** What is decided under the lock is told without it, as by the module's messages. */
    private void tell(Supplier<Runnable> decides) {
        Runnable ended;
        synchronized (session.lock) {
            ended = isOver() ? null : decides.get();
        }
        if (ended != null) {
            ended.run();
        }
    }

    Runnable granted(Call call, long token, long sent) {
        return () -> session.granted(wire, call.tag(), token, sent);
    }

    Runnable timedOut(Call call) {
        return () -> session.notified(wire, "timeout " + call.tag());
    }

    /** Somebody else has it. */
    Runnable stands(Call call) {
        return () -> session.notified(wire, "stands " + call.tag());
    }

    Runnable refused(Call call, String refusal) {
        return () -> session.notified(wire, "error " + call.tag() + " " + refusal);
    }

    /** Whether the request is asked for again after that, maybe at another server. */
    boolean goesOn(String refusal) {
        return Reply.noMaster(refusal) || session.router.moves() && MOVES.contains(Reply.code(refusal));
    }

    /** A place whose waits go on in another line. */
    void leave(Line.Of of, String place) {
        session.router.places().leave(of, place);
    }

    void gaveUp(Call cancel) {
        library.call(cancel);
    }

    // --- messages

    /** True if something is subscribed to by that, which it was not before. */
    boolean hear(Line line, List<String> channels) {
        var fresh = channels.stream().filter(channel -> !ears.containsKey(channel)).toList();
        channels.forEach(channel -> ears.computeIfAbsent(channel, its -> new LinkedHashSet<>()).add(line));
        if (!fresh.isEmpty()) {
            wire.hear(fresh).whenComplete((nothing, error) -> {
                String refusal = Reply.refusal(error);
                if (refusal != null) {
                    tell(() -> deaf(fresh, refusal));
                }
            });
        }
        return !fresh.isEmpty();
    }

    /** The server lets us listen to nothing, so nobody can wait there. */
    private Runnable deaf(List<String> channels, String refusal) {
        var ended = new ArrayList<Runnable>();
        for (String channel : channels) {
            for (Line line : Objects.requireNonNullElse(ears.remove(channel), Set.<Line>of())) {
                ended.addAll(line.refuse(channel, refusal));
            }
        }
        return () -> ended.forEach(Runnable::run);
    }

    void hearNoMore(Line line, List<String> channels) {
        var last = new ArrayList<String>();
        for (String channel : channels) {
            var its = ears.get(channel);
            if (its != null && its.remove(line) && its.isEmpty()) {
                ears.remove(channel);
                last.add(channel);
            }
        }
        if (!last.isEmpty()) {
            wire.hearNoMore(last);
        }
    }

    /** There is a message, which says no more than that it is time to try. */
    void heard(String channel) {
        synchronized (session.lock) {
            if (!isOver()) {
                List.copyOf(ears.getOrDefault(channel, Set.of())).forEach(Line::wake);
            }
        }
    }

    /** The server ended that: the slot of the lock is elsewhere now, as the next try is told. */
    void deafened(String channel) {
        synchronized (session.lock) {
            var its = ears.remove(channel);
            if (!isOver() && its != null) {
                its.forEach(line -> line.deafened(channel));
            }
        }
    }

    // --- what lines need

    Future<?> after(long millis, Runnable run) {
        return session.timer.schedule(() -> {
            synchronized (session.lock) {
                if (!isOver()) {
                    run.run();
                }
            }
        }, Math.max(0, millis), TimeUnit.MILLISECONDS);
    }

    void forget(Line.Of of) {
        lines.remove(of);
    }
}

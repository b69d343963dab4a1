package dev.rlock;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;

/**
 * All waits of this process for one lock in one way, in the order in which they came. The first of
 * them tries: at once, when a message says that the lock may be free, and now and then, for messages
 * can be lost. Who has waited for a while, or finds a queue, has a place in it, and hears of its turn
 * alone. Under the session's lock.
 */
final class Line {
    /** Who has waited for so long takes a place; so long it is kept without another try, in ms. */
    private static final long PATIENCE = 100;

    static final long KEPT = 2_000;
    /** Between tries, with a place and without. */
    private static final long WITH_PLACE = 500;

    private static final long WITHOUT_PLACE = 700;
    /** An empty line of one lock listens on for so long: soon somebody may wait again. */
    private static final long IDLE = 5_000;

    private final Plain plain;
    private final Of of;
    /** That of its place. */
    private final String name;
    private final List<String> locks;
    private final String turn;
    private final Map<Target, Waiting> waiting = new LinkedHashMap<>();
    private final Set<String> hears = new HashSet<>();
    /** As far as is known: a try that takes one may be under way. */
    private boolean hasPlace;
    /** Its waits go on in another line. */
    private boolean moved;
    /** Others had places too, when the server was asked last: then it takes one at once. */
    private boolean isBusy;
    /** When the first tries next, or the empty line ends. */
    private Future<?> next;

    /** What its waits have in common. */
    record Of(List<String> keys, Mode mode) {
        static Of call(Call call) {
            var request = call.target().request();
            return new Of(request.keys, request.mode);
        }

        boolean hasQueue() {
            return keys.size() == 1;
        }
    }

    private final class Waiting {
        final Call call;
        final long began = System.nanoTime();
        /** Tells that its time is over. */
        Future<?> end;
        boolean trying;
        /** How often it did. */
        int tries;
        /** While it tried there was a message. */
        boolean again;
        /** Its time is over. */
        boolean over;
        /** And this is the try after that. */
        boolean last;
        boolean cancelled;
        /** It cannot go on, for it may not listen. */
        String refusal;

        Waiting(Call call) {
            this.call = call;
        }

        long waited() {
            return (System.nanoTime() - began) / Millis.NANOS;
        }
    }

    /** @param place the name of the one that these waits had before, or null */
    Line(Plain plain, Of of, String place) {
        this.plain = plain;
        this.of = of;
        hasPlace = place != null;
        name = hasPlace ? place : UUID.randomUUID().toString();
        boolean shared = of.mode == Mode.READ || of.mode == Mode.WRITE;
        locks = of.keys.stream().map(key -> Call.beside(shared ? "redisson_rwlock" : "redisson_lock__channel", key)).toList();
        turn = Call.beside("redisson_lock__channel", of.keys.get(0)) + ":" + name;
    }

    // --- who waits

    void add(Call call) {
        var one = new Waiting(call);
        waiting.put(call.target(), one);
        if (call.millis() != Request.FOR_EVER) {
            one.end = plain.after(call.millis(), () -> end(one));
        }
        if (first() == one) {
            attempt(one);
        }
    }

    private Waiting first() {
        return waiting.isEmpty() ? null : waiting.values().iterator().next();
    }

    /** That nobody has given it the lock is said only when the server says so once more. */
    private void end(Waiting one) {
        one.over = true;
        if (!one.trying && waiting.get(one.call.target()) == one) {
            one.last = true;
            attempt(one);
        }
    }

    /** How the wait ended, if that is known by now. */
    Runnable cancel(Target target) {
        Waiting one = waiting.get(target);
        if (one == null) {
            return null;
        }
        one.cancelled = true;
        if (one.trying) {
            return null; // it may be granted still
        }
        leave(one);
        return plain.timedOut(one.call);
    }

    private void leave(Waiting one) {
        boolean first = first() == one;
        waiting.remove(one.call.target());
        if (one.end != null) {
            one.end.cancel(false);
        }
        if (waiting.isEmpty()) {
            idle(one);
        } else if (first) {
            attempt(first());
        }
    }

    /** Nobody waits here any more. */
    private void idle(Waiting last) {
        stopTimer();
        if (hasPlace) {
            hasPlace = false;
            plain.gaveUp(last.call.target().cancel().call().with("PLACE", name));
        }
        if (of.hasQueue() && !moved) {
            next = plain.after(IDLE, this::leaveOff);
        } else {
            leaveOff();
        }
    }

    private void leaveOff() {
        plain.hearNoMore(this, List.copyOf(hears));
        plain.forget(of);
    }

    /** The connection is gone. */
    void stop() {
        stopTimer();
        if (!waiting.isEmpty()) {
            leavePlace();
        }
        waiting.values().stream().filter(one -> one.end != null).forEach(one -> one.end.cancel(false));
    }

    private void leavePlace() {
        if (hasPlace) {
            hasPlace = false;
            plain.leave(of, name);
        }
    }

    private void stopTimer() {
        if (next != null) {
            next.cancel(false);
            next = null;
        }
    }

    // --- trying

    private void attempt(Waiting one) {
        if (one.trying) {
            one.again = true;
            return;
        }
        if (one == first()) {
            stopTimer();
        }
        send(one);
    }

    private void send(Waiting one) {
        int number = ++one.tries;
        one.trying = true;
        one.again = false;
        hasPlace = wantsPlace();
        // Before it is sent: the reply may be there at once, and says when to try next.
        if (one == first()) {
            stopTimer();
            next = plain.after(around(WITHOUT_PLACE), () -> late(one));
        }
        plain.tries(one.call.with("PLACE", name, hasPlace ? KEPT : 0), (reply, error, sent) ->
                number == one.tries || reply instanceof Long ? tried(one, reply, error, sent) : null); // a later one says what counts
    }

    /** There is no reply: that try may have come before a release. */
    private void late(Waiting one) {
        if (one == first() && one.trying && !one.cancelled) {
            one.last = one.over;
            send(one);
        }
    }

    private boolean wantsPlace() {
        return of.hasQueue() && (hasPlace || isBusy || first().waited() >= PATIENCE);
    }

    private Runnable tried(Waiting one, Object reply, Throwable error, long sent) {
        if (waiting.get(one.call.target()) != one) {
            return null; // a try before that had the lock
        }
        one.trying = false;
        String refusal = Reply.refusal(error);
        if (refusal != null) {
            if (plain.goesOn(refusal)) {
                moved = true;
                leavePlace();
            }
            leave(one);
            return plain.refused(one.call, refusal);
        } else if (error != null) {
            return null; // the connection is about to break
        } else if (reply instanceof Long token) {
            hasPlace = false; // it goes with the grant
            leave(one);
            Waiting first = first();
            if (first != null && !first.trying) {
                attempt(first);
            }
            return plain.granted(one.call, token, sent);
        }
        var words = (List<?>) reply;
        long ahead = (Long) words.get(1);
        hasPlace = ahead >= 0;
        isBusy = ahead > 0 || ahead < -1;
        if (one.cancelled || one.last) {
            leave(one);
            return plain.timedOut(one.call);
        } else if (one.refusal != null) {
            leave(one);
            return plain.refused(one.call, one.refusal);
        } else if (one.over) {
            end(one);
        } else if (one == first()) {
            boolean fresh = listen();
            if (fresh || one.again) {
                attempt(one);
            } else {
                schedule(one, (Long) words.get(0));
            }
            return plain.stands(one.call);
        }
        return null;
    }

    /** @param left until it can be worth it without a message, as the server knows; or -1 */
    private void schedule(Waiting one, long left) {
        long in = around(hasPlace ? WITH_PLACE : WITHOUT_PLACE);
        if (of.mode == Mode.PERMITS && !hasPlace) {
            in = ThreadLocalRandom.current().nextLong(PATIENCE / 2, PATIENCE); // no message says that some came back
        }
        if (left >= 0) {
            in = Math.min(in, left);
        }
        if (of.hasQueue() && !hasPlace && one.waited() < PATIENCE) {
            in = Math.min(in, PATIENCE - one.waited());
        }
        stopTimer();
        next = plain.after(Math.max(1, in), () -> {
            if (one == first()) {
                attempt(one);
            }
        });
    }

    /** So that not all processes try at a time. */
    private static long around(long millis) {
        return ThreadLocalRandom.current().nextLong(millis * 8 / 10, millis * 12 / 10 + 1);
    }

    // --- listening

    /** True if it hears something only from now on, and had better try again. */
    private boolean listen() {
        var wanted = new ArrayList<String>();
        if (of.hasQueue()) {
            wanted.add(turn);
        }
        if (hasPlace) {
            plain.hearNoMore(this, locks);
            locks.forEach(hears::remove);
        } else {
            wanted.addAll(locks);
        }
        wanted.removeAll(hears);
        hears.addAll(wanted);
        return plain.hear(this, wanted);
    }

    void wake() {
        Waiting first = first();
        if (first != null) {
            attempt(first);
        }
    }

    void deafened(String channel) {
        hears.remove(channel);
        wake();
    }

    /** The server does not let it, so nobody can wait here; who tries just now may have the lock. */
    List<Runnable> refuse(String channel, String refusal) {
        hears.remove(channel);
        var ended = waiting.values().stream().filter(one -> !one.trying).toList();
        waiting.values().forEach(one -> one.refusal = refusal);
        ended.forEach(one -> waiting.remove(one.call.target()));
        ended.forEach(this::leave);
        return ended.stream().map(one -> plain.refused(one.call, refusal)).toList();
    }
}

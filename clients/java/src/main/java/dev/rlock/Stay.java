package dev.rlock;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * What the sessions have of a sticky lock: the lock itself, who uses it, who waits for it. Uses take and give back their turn by
 * themselves; what else there is to decide is decided here, under the sessions' lock, by {@link #look}, which takes the turn first:
 * whatever has happened, it does what follows.
 */
final class Stay {
    /** So long, in ms, uses follow each other although somebody else waits. */
    private static final long LEAST = 20;
    /** Then it goes back although nobody says that he waits: who polls is to have a chance, */
    static final long MOST = 1_000;
    /** of that length. */
    private static final long PAUSE = 10;

    final String key;
    final Turn.On on = new Turn.On();
    private final Asks asks;
    private final Router router;
    private final ScheduledExecutorService timer;
    private final long timeout;
    private final Request request;
    private final long idle;
    private final long wait;
    final ArrayDeque<Waiting> line = new ArrayDeque<>();
    /** An acquisition that is under way, and what came of one. */
    private Asking asking;
    private Turn.Lease lease;
    /** Until then it is not acquired. */
    private long pause = System.nanoTime();
    /** A use has had it since its grant. */
    private boolean served;
    private final Backoff backoff = new Backoff();
    private StayTokens tokens;
    private boolean closed;
    private final ConnectionException closedError;
    private boolean proves;
    /** Uses that end, but ask first whether they had it. */
    private final List<CompletableFuture<Void>> ends = new ArrayList<>();
    private CompletableFuture<Void> goesBack = CompletableFuture.completedFuture(null);
    private Future<?> next;
    private long due;
    /** Until then what came while this process was paused is read first. */
    private long reads = System.nanoTime();

    /** A use that waits for its turn: until then, and without a word of the server to the last. */
    record Waiting(Turn turn, long until, long last, CompletableFuture<Turn.Lease> to) {}

    Stay(Asks asks, Router router, ScheduledExecutorService timer, long timeout, Request request, long idle, long wait) {
        this.asks = asks;
        this.router = router;
        this.timer = timer;
        this.timeout = timeout;
        this.request = request;
        this.idle = idle;
        this.wait = wait;
        key = request.key();
        closedError = new ConnectionException("the sticky lock of " + key + " is closed", null);
    }

    // --- the uses

    CompletableFuture<Turn.Lease> begin(Turn turn) {
        var to = new CompletableFuture<Turn.Lease>();
        synchronized (router.lock()) {
            if (asks.isClosed()) {
                to.completeExceptionally(Session.closedError());
            } else if (closed) {
                to.completeExceptionally(Thrown.again(closedError));
            } else {
                asks.stays.add(this);
                long now = System.nanoTime();
                line.add(new Waiting(turn, Millis.after(now, wait), Millis.after(now, Math.max(wait, timeout)), to));
                look();
            }
        }
        return to;
    }

    /** Nobody wants that use any more. */
    void giveUp(Turn turn) {
        synchronized (router.lock()) {
            if (!line.removeIf(waiting -> waiting.turn == turn)) {
                on.giveBack(turn);
            }
            somebodyLeft();
            look();
        }
    }

    /** The last one takes the request along. */
    private void somebodyLeft() {
        if (line.isEmpty() && asking != null) {
            Asking last = asking;
            asking = null;
            asks.giveUp(last, new NotAcquiredException(key, null));
        }
    }

    private void leaveAll(Throwable error) {
        for (Waiting waiting; (waiting = line.poll()) != null; ) {
            waiting.to.completeExceptionally(Thrown.again(error));
        }
        somebodyLeft();
    }

    /** Completes when the server has answered to the release; at once if a use is under way. */
    CompletableFuture<Void> close() {
        synchronized (router.lock()) {
            closed = true;
            leaveAll(closedError);
            look();
            return on.isUsed() ? CompletableFuture.completedFuture(null) : goesBack;
        }
    }

    void locksClosed() {
        synchronized (router.lock()) {
            closed = true;
            leaveAll(Session.closedError());
        }
    }

    /** For a use that ends, and has heard nothing for too long. */
    CompletableFuture<Void> prove() {
        var end = new CompletableFuture<Void>();
        synchronized (router.lock()) {
            ends.add(end);
            look();
        }
        return end;
    }

    CompletableFuture<Long> token(Turn turn) {
        synchronized (router.lock()) {
            Holding holding = lease == null ? null : lease.holding;
            String why = holding == null || !on.isOf(turn) ? "released" : holding.lost();
            return why == null ? tokens.of(turn) : CompletableFuture.failedFuture(new LostException(key, why));
        }
    }

    // --- the decisions

    /** Does what follows from what there is. While a use is under way that is nothing: at its end it is looked again. */
    void look() {
        synchronized (router.lock()) {
            mark();
            if (on.take()) {
                try {
                    decide();
                } finally {
                    on.decided();
                }
            }
            letEndsGo();
            mark();
            wind();
        }
    }

    /** The lock is lost, or was never had. */
    private boolean isAway() {
        return lease == null || lease.holding.lost() != null || lease.holding.released;
    }

    /** Before anything else is looked at: a use that has the turn already sees it at its end. */
    private void mark() {
        on.waits = !line.isEmpty();
        if (isAway() || leaves()) {
            on.lease = null;
        }
    }

    private void decide() {
        if (lease != null && isAway()) {
            lease = null;
        } else if (lease != null && leaves()) {
            // What else is waited for comes right behind it.
            Wire.inOneWrite(line.isEmpty() ? null : lease.holding.session.wire(), () -> {
                goBack();
                acquireIfWanted();
                return null;
            });
        }
        acquireIfWanted();
        if (line.isEmpty() || isAway()) {
            return;
        }
        if (lease.isProved(System.nanoTime(), System.currentTimeMillis())) {
            Waiting first = line.remove();
            served = true;
            on.handTo(first.turn);
            mark(); // it may end at once
            first.to.complete(lease);
        } else {
            ask();
        }
    }

    private boolean isWanted() {
        return lease.holding.wanted != null && lease.holding.wanted.wasSaid();
    }

    /** Whether the server says, on this connection, that somebody wants it. */
    private boolean isTold() {
        Wire by = lease.holding.session.wire();
        Wanted wanted = lease.holding.wanted;
        return by != null && wanted != null && wanted.askedBy == by && by.hearsWanted();
    }

    private boolean isOlder(long millis) {
        return Millis.until(Millis.after(lease.holding.since, millis)) <= 0;
    }

    /** Whether it goes back when no use is under way. */
    private boolean leaves() {
        boolean alone = line.isEmpty();
        if (closed || tokens.areUnsure() || alone && backoff.isOn()) {
            return true;
        } else if (!isTold()) {
            return alone || served;
        } else if (isWanted()) {
            return alone || served && isOlder(LEAST);
        } else if (isOlder(MOST)) {
            return alone || served;
        }
        return alone && !on.isUsed() && Millis.until(Millis.after(on.used, idle)) <= 0;
    }

    private void goBack() {
        on.lease = null;
        backoff.wentBack(lease.uses, isWanted());
        if (!isWanted() && isOlder(MOST)) {
            pause = Millis.after(System.nanoTime(), PAUSE);
        }
        tokens.fail(() -> new LostException(key, "released"));
        Holding last = lease.holding;
        lease = null;
        goesBack = last.session.holds.goBack(last).handle((nothing, error) -> null); // what is refused is asked for again
    }

    private void acquireIfWanted() {
        if (lease != null || asking != null || line.isEmpty() || System.nanoTime() - pause < 0) {
            return;
        }
        var asked = new Asking(request, Owner.fresh(), null, new Job.Place());
        asked.wanted = new Wanted();
        asked.stay = this;
        asking = asked;
        asks.begin(asked);
        asked.end.whenComplete((holding, error) -> came(asked, holding, error));
        router.ask(asked);
    }

    private void came(Asking asked, Holding holding, Throwable error) {
        asks.over(asked);
        synchronized (router.lock()) {
            if (asking != asked) {
                if (holding != null) {
                    holding.session.holds.release(holding);
                }
                return;
            }
            asking = null;
            if (holding == null) {
                leaveAll(Thrown.cause(error));
            } else {
                lease = new Turn.Lease(holding, MOST);
                tokens = new StayTokens(this, holding, timer, timeout);
                served = false;
                on.used = System.nanoTime();
                on.lease = lease;
            }
            look();
        }
    }

    void lost(String reason) {
        if (tokens != null) {
            tokens.fail(() -> new LostException(key, reason));
        }
        look();
    }

    /** What the server has said of it until now is read before its answer. */
    private void ask() {
        Session session = lease.holding.session;
        Wire by = session.wire();
        if (proves || by == null) {
            return; // there is none: it is looked again soon
        }
        proves = true;
        Moment sent = Moment.now();
        by.send(Wire.Command.of("PING")).whenComplete((pong, error) -> {
            synchronized (router.lock()) {
                proves = false;
                if (error == null || Reply.refusal(error) != null) {
                    session.proven(by, sent);
                    look();
                } // else the connection is about to break
            }
        });
    }

    private void letEndsGo() {
        if (ends.isEmpty()) {
            return;
        } else if (!isAway() && !lease.isProved(System.nanoTime(), System.currentTimeMillis())) {
            ask();
            return;
        }
        var all = List.copyOf(ends);
        ends.clear();
        all.forEach(end -> end.complete(null));
    }

    /** Those whose time is over, if it is known why they did not get it. */
    private void letOverdueGo() {
        long now = System.nanoTime();
        if (line.stream().noneMatch(waiting -> now - waiting.until >= 0)) {
            return;
        }
        String heldBy = lease != null && on.isUsed() ? lease.holding.target.owner() : null;
        boolean known = heldBy != null || asking != null && asking.stands();
        for (Waiting waiting : List.copyOf(line)) {
            if (now - waiting.until >= 0 && (known || now - waiting.last >= 0)) {
                line.remove(waiting);
                waiting.to.completeExceptionally(known ? new NotAcquiredException(key, heldBy) : noAnswer());
            }
        }
        somebodyLeft();
    }

    /** The server has said that somebody else has it, which may be all that is known of those whose time is over. */
    void stands() {
        letOverdueGo();
        look();
    }

    private ConnectionException noAnswer() {
        return asking != null && asking.session != null && !asking.session.listens()
                ? asking.session.dialler.error()
                : new ConnectionException("the server has not answered within " + timeout + " ms", null);
    }

    private void wind() {
        long now = System.nanoTime();
        long in = Long.MAX_VALUE;
        for (Waiting waiting : line) {
            in = Math.min(in, (now - waiting.until < 0 ? waiting.until : waiting.last) - now);
        }
        if (!line.isEmpty() && lease == null && asking == null) {
            in = Math.min(in, pause - now);
        }
        if (!isAway()) {
            boolean used = on.isUsed() || !line.isEmpty() || !ends.isEmpty();
            long soon = used
                    ? Math.max(idle, 10) * Millis.NANOS
                    : Math.min(Millis.after(on.used, idle), Millis.after(lease.holding.since, MOST)) - now;
            in = Math.min(in, soon);
        } else if (on.isUsed()) {
            in = Math.min(in, MOST * Millis.NANOS); // it may be forgotten
        }
        if (in == Long.MAX_VALUE) {
            if (line.isEmpty() && asking == null && lease == null) {
                asks.stays.remove(this);
            }
            return;
        }
        long at = now + Math.max(in, Math.max(Millis.NANOS, reads - now));
        if (next == null || at - due < 0) {
            if (next != null) {
                next.cancel(false);
            }
            due = at;
            next = timer.schedule(this::isDue, at - now, TimeUnit.NANOSECONDS);
        }
    }

    private void isDue() {
        synchronized (router.lock()) {
            next = null;
            if (Late.isPaused(due)) {
                reads = Millis.after(System.nanoTime(), Late.READING);
            } else {
                letOverdueGo();
            }
            look();
        }
    }
}

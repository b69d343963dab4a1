package dev.rlock;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** The requests of a session, from the asking to the hold or the end. */
final class Requests {
    /** Beyond the wait of a request: so long the server has to say by itself that it is over. */
    private static final long GRACE = 200;

    private final Session session;
    private final long timeout;
    /** Those that wait for a connection. */
    private final Set<Asking> unsent = new LinkedHashSet<>();
    /** Those whose CANCEL the server has refused. */
    private final Set<Asking> uncancelled = new LinkedHashSet<>();

    Requests(Session session, long timeout) {
        this.session = session;
        this.timeout = timeout;
    }

    void ask(Asking asking) {
        synchronized (session.lock) {
            asking.session = session;
            if (asking.isUnwanted() && !asking.over) {
                end(asking, notAcquired(asking));
            }
            if (asking.over) {
                asking.leave();
            } else if (session.isClosed()) {
                fail(asking, Session.closedError());
            } else {
                schedule(asking);
                if (session.listens()) {
                    send(asking);
                } else {
                    unsent.add(asking);
                    session.connect();
                }
            }
        }
    }

    boolean areUnsent() {
        return !unsent.isEmpty();
    }

    void sendAll() {
        takeUnsent().forEach(this::send);
    }

    /** What had to wait for something else to come first. */
    private void sendLate() {
        synchronized (session.lock) {
            if (session.listens()) {
                sendAll();
            }
        }
    }

    List<Asking> takeUnsent() {
        var all = List.copyOf(unsent);
        unsent.clear();
        return all;
    }

    private void send(Asking asking) {
        if (!asking.maySay(session.wire())) {
            unsent.add(asking);
            asking.behindThat(() -> asking.session.requests.sendLate());
            return;
        }
        long left = asking.left();
        asking.token = 0;
        asking.stands(false);
        asking.queued = left != 0;
        asking.sent = System.nanoTime();
        asking.byServer = asking.request.watchdog && session.wire().plain() == null;
        if (asking.job != null && !asking.sentEver && session.wire().plain() != null) {
            asking.target = asking.target.alone(asking.place);
        }
        asking.sentEver = true;
        asking.tag = session.put(asking);
        Wire.Command command = asking.target.acquire(left, session.channel(), asking.tag, session.hints.words(asking));
        onReply(asking, session.wire().call(command), reply -> {
            if (reply instanceof Long token) {
                granted(asking, token, false);
            } else if (!asking.queued) {
                fail(asking, notAcquired(asking));
            } else if (session.wire().plain() == null) { // QUEUED, which Lettuce gives as null
                asking.stands(true);
            }
        });
    }

    private NotAcquiredException notAcquired(Asking asking) {
        return new NotAcquiredException(asking.request.key(), session.holds.holder(asking.request.keys));
    }

    /** Goes on with the reply, if the request is still under way by the same tag. */
    private void onReply(Asking asking, CompletableFuture<Object> reply, Consumer<Object> next) {
        long tag = asking.tag;
        reply.whenComplete((value, error) -> {
            synchronized (session.lock) {
                if (!session.knows(tag, asking)) {
                    return;
                }
                String text = Reply.refusal(error);
                if (error == null) {
                    next.accept(value);
                } else if (text != null) {
                    refused(asking, text);
                } else if (error instanceof RlockException refused) { // by too few replicas
                    end(asking, refused);
                    giveBack(asking);
                } else {
                    session.breakLater();
                }
            }
            asking.complete();
        });
    }

    void notified(Asking asking, String word, String rest) {
        switch (word) {
            case "granted" -> {
                if (rest.endsWith(" wanted")) {
                    wanted(asking);
                }
                granted(asking, Long.parseLong(Reply.code(rest)), true); // more words may follow
            }
            case "wanted" -> wanted(asking); // ahead of the reply
            case "timeout" -> fail(asking, notAcquired(asking));
            case "lost" -> fail(asking, new LostException(asking.request.key(), rest)); // while it waits for acks
            case "stands" -> asking.stands(true); // without the module
            case "error" -> refused(asking, rest);
            default -> {} // a newer server says more
        }
    }

    private static void wanted(Asking asking) {
        if (asking.wanted != null) {
            asking.wanted.said(asking.lease());
        }
    }

    private void refused(Asking asking, String text) {
        boolean moves = session.router.moves();
        if (Reply.noMaster(text)) {
            session.breakLater(); // the address may soon lead to the master
        } else if (moves && text.startsWith("MOVED")) {
            forget(asking);
            session.router.moved(asking);
        } else if (moves && (text.startsWith("ASK ") || text.startsWith("TRYAGAIN"))) {
            forget(asking);
            session.timer.schedule(() -> session.router.ask(asking), 50, TimeUnit.MILLISECONDS);
        } else if (text.startsWith("NOTYET")) { // asked again as long as there is time
            forget(asking);
            session.timer.schedule(() -> session.router.ask(asking), 500, TimeUnit.MILLISECONDS);
        } else if (text.startsWith("SUPERSEDED") && asking.sentBefore && !asking.over) {
            // By what it said on a connection that is gone, and that came late.
            asking.sentBefore = false;
            forget(asking);
            send(asking);
        } else if (text.startsWith("NOTHELD")) { // its grant ended before it could be renewed
            fail(asking, new LostException(asking.request.key(), "expired"));
        } else if (Hints.isUnknown(text) && session.hints.isRefused(asking.wanted, session.wire(), text)) {
            forget(asking);
            send(asking); // without the word
        } else {
            session.dialler.good();
            if (asking.token == 0) {
                fail(asking, Reply.error(text));
            } else {
                end(asking, Reply.error(text));
                giveBack(asking);
            }
        }
    }

    /** @param waited its lease began at a time that is not known */
    private void granted(Asking asking, long token, boolean waited) {
        session.dialler.good();
        if (asking.token != 0) {
            return;
        }
        asking.token = token;
        if (asking.over) {
            giveBack(asking);
        } else if (waited && !asking.request.watchdog) {
            asking.sent = System.nanoTime();
            onReply(asking, session.wire().call(asking.target.renew(asking.lease())), one -> acknowledge(asking));
        } else {
            acknowledge(asking);
        }
    }

    /** @param sent what granted it */
    void granted(Asking asking, long token, long sent) {
        asking.sent = sent;
        granted(asking, token, false);
    }

    private void acknowledge(Asking asking) {
        if (asking.request.acks > 0) {
            long tag = asking.tag;
            var enough = session.acks.enough(asking.target, session.wire(), () -> isOver(asking, tag));
            onReply(asking, enough, yes -> give(asking));
        } else {
            give(asking);
        }
    }

    private boolean isOver(Asking asking, long tag) {
        synchronized (session.lock) {
            return !session.knows(tag, asking);
        }
    }

    private void give(Asking asking) {
        var holding = new Holding(asking, session);
        session.replace(asking.tag, holding);
        stopTimer(asking);
        session.holds.begin(holding);
        asking.given = holding;
    }

    /** A grant that nobody wants any more. */
    private void giveBack(Asking asking) {
        long token = asking.token;
        forget(asking);
        runLast(asking, asking.target.release(token));
    }

    private void forget(Asking asking) {
        session.forget(asking.tag, asking);
        asking.tag = 0;
    }

    private void fail(Asking asking, RlockException error) {
        forget(asking);
        end(asking, error);
        asking.leave();
    }

    private void end(Asking asking, RlockException error) {
        stopTimer(asking);
        asking.over = true;
        asking.giveUp();
        asking.end.completeExceptionally(error);
    }

    private static void stopTimer(Asking asking) {
        if (asking.timer != null) {
            asking.timer.cancel(false);
        }
    }

    /** The program wants it no more: CANCEL, and the release if the grant crossed it. */
    void giveUp(Asking asking, RlockException why) {
        synchronized (session.lock) {
            if (asking.given != null) {
                session.holds.release(asking.given); // it was granted before
            } else if (!asking.over) {
                end(asking, why);
                if (asking.token != 0) {
                    giveBack(asking);
                } else if (asking.tag != 0) {
                    cancel(asking);
                } else if (unsent.remove(asking)) {
                    cleanUp(asking);
                } // else it is between two sessions, and the next one sees that it is over
            }
        }
    }

    /** How it ended is notified by its tag. */
    private void cancel(Asking asking) {
        long tag = asking.tag;
        session.wire().call(asking.target.cancel()).whenComplete((reply, error) -> {
            synchronized (session.lock) {
                if (Reply.refusal(error) != null && session.knows(tag, asking)) {
                    uncancelled.add(asking);
                }
            }
        });
    }

    /** With each heartbeat: what the server refused, it may do now. */
    void cancelAgain() {
        var all = List.copyOf(uncancelled);
        uncancelled.clear();
        all.stream().filter(asking -> session.knows(asking.tag, asking)).forEach(this::cancel);
    }

    /** Nobody knows what became of it on the connection that broke: the next one ends it. */
    private void cleanUp(Asking asking) {
        if (asking.sentEver) {
            runLast(asking, asking.target.cancel(), asking.target.releaseAll());
        } else {
            asking.leave();
        }
    }

    private void runLast(Asking asking, Wire.Command... commands) {
        var last = new PendingCommand(asking.request.key(), PendingCommand.Kind.CLEANUP, commands);
        session.pending.run(last);
        asking.leaveBehind(last);
    }

    void broke(Asking asking) {
        asking.sentBefore |= asking.tag != 0;
        asking.tag = 0;
        if (asking.over) {
            cleanUp(asking);
        } else {
            unsent.add(asking);
        }
    }

    private void schedule(Asking asking) {
        if (asking.timer == null && asking.request.wait != Request.FOR_EVER) {
            long in = asking.waits() ? asking.left() + GRACE : timeout;
            asking.timer = overdueIn(asking, in);
        }
    }

    private Future<?> overdueIn(Asking asking, long millis) {
        return Late.after(session.timer, () -> asking.session.requests.overdue(asking), millis);
    }

    private void overdue(Asking asking) {
        synchronized (session.lock) {
            if (asking.over || asking.given != null) {
                return;
            }
            if (asking.session != session) {
                asking.timer = overdueIn(asking, 0); // it has just moved on
                return;
            }
            if (asking.token != 0 && asking.tag != 0) { // granted: replicas are asked, in a time of their own
                asking.timer = overdueIn(asking, timeout);
                return;
            }
            boolean asked = asking.tag != 0;
            long left = Millis.until(Millis.after(asking.began, timeout));
            if (asking.calledOff) {
                giveUp(asking, silent());
            } else if (asked && asking.waits()) {
                // Whether somebody else had it, the server has to say.
                asking.calledOff = true;
                cancel(asking);
                asking.timer = overdueIn(asking, timeout);
            } else if (left > 0) {
                asking.timer = overdueIn(asking, left);
            } else {
                giveUp(asking, asked ? silent() : session.dialler.error());
            }
        }
    }

    private ConnectionException silent() {
        return new ConnectionException("the server has not answered within " + timeout + " ms", null);
    }

    /** There is no connection, and will be none. */
    void refuse(RefusedException why) {
        takeUnsent().forEach(asking -> {
            end(asking, why.again());
            cleanUp(asking);
        });
    }

    void close() {
        for (Asking asking : session.askings()) {
            giveUp(asking, Session.closedError());
        }
        List.copyOf(unsent).forEach(asking -> giveUp(asking, Session.closedError()));
    }
}

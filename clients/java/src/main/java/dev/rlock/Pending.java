package dev.rlock;

import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/** The pending commands of a session; under its lock, but for {@link #adopt}. */
final class Pending {
    private final Session session;
    /** What must be sent on each new connection before anything else, until it is answered. */
    private final Set<PendingCommand> all = new LinkedHashSet<>();

    Pending(Session session) {
        this.session = session;
    }

    boolean isEmpty() {
        return all.isEmpty();
    }

    /** What is left is asked for again with the next heartbeat. */
    boolean isPutOff() {
        return all.stream().allMatch(one -> one.again);
    }

    void run(PendingCommand one) {
        if (session.isEnded()) {
            one.taken.complete(null);
            one.over.complete(null);
            one.answer.completeExceptionally(Session.closedError());
            return;
        }
        all.add(one);
        if (session.wire() == null) {
            one.over.complete(null);
            session.dialler.dial();
        } else {
            say(one);
        }
    }

    /** One that another session had. */
    void adopt(PendingCommand one) {
        synchronized (session.lock) {
            if (!one.dropped) {
                run(one);
            }
        }
    }

    private List<PendingCommand> inOrder() {
        return all.stream().sorted(Comparator.comparing((PendingCommand one) -> one.kind)).toList();
    }

    void sayAll() {
        inOrder().forEach(this::say);
    }

    /** What the server would not do before. */
    void sayAgain() {
        inOrder().stream().filter(one -> one.again).forEach(this::say);
    }

    /** Nobody waits for the connection that is gone. */
    void broke() {
        all.forEach(one -> one.over.complete(null));
    }

    List<PendingCommand> takeAll() {
        var taken = inOrder();
        all.clear();
        session.notifyClose();
        return taken;
    }

    void refuse(RefusedException why) {
        inOrder().stream().filter(one -> one.kind == PendingCommand.Kind.RENEW).forEach(one -> {
            drop(one);
            one.answer.completeExceptionally(why.again());
        });
    }

    void drop(PendingCommand one) {
        one.dropped = true;
        done(one);
    }

    private void done(PendingCommand one) {
        all.remove(one);
        one.taken.complete(null);
        session.notifyClose();
    }

    private void say(PendingCommand one) {
        Wire by = session.wire();
        one.sent = System.nanoTime();
        one.again = one.kind == PendingCommand.Kind.REGAIN && session.channel() == null;
        if (one.again) {
            return; // with the next heartbeat
        }
        CompletableFuture<Object> last = null;
        for (Wire.Command command : one.commands(session)) {
            last = by.call(command);
        }
        last.whenComplete((reply, error) -> {
            boolean done;
            synchronized (session.lock) {
                done = by == session.wire() && answered(one, by, error);
            }
            if (done) { // not under the lock, as Asking.complete
                one.answer.complete(reply);
                one.over.complete(null);
            }
        });
    }

    /** True if it is done; then its futures are still to be completed. */
    private boolean answered(PendingCommand one, Wire by, Throwable error) {
        String text = Reply.refusal(error);
        if (error == null) {
            session.dialler.good();
            done(one);
            return true;
        } else if (text == null || Reply.noMaster(text)) {
            session.breakLater();
        } else if (text.startsWith("MOVED") && session.router.moves()) {
            all.remove(one);
            session.router.moved(one);
            session.notifyClose();
        } else if (!one.dropped && one.saysLess(session, by, text)) {
            // At once, unless that would come behind a renewal of the program's, which was said behind it.
            one.again = all.stream().anyMatch(other -> other.kind == PendingCommand.Kind.RENEW && other.key.equals(one.key));
            if (!one.again) {
                say(one);
            }
        } else if (one.kind != PendingCommand.Kind.RENEW && !one.dropped && Reply.notNow(text)) {
            one.again = true;
            one.over.completeExceptionally(Reply.error(text));
            session.notifyClose();
        } else {
            done(one);
            one.answer.completeExceptionally(error);
            one.over.completeExceptionally(Reply.error(text));
        }
        return false;
    }
}

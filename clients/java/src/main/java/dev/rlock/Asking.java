package dev.rlock;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;

/** A request under way. What changes is guarded by the monitor of its session. */
final class Asking implements Ticket {
    final Request request;
    Target target;
    /** The job that it belongs to and its place there, or null. */
    final Job job;
    final Job.Place place;
    /** What the program waits for. */
    final CompletableFuture<Holding> end = new CompletableFuture<>();
    final long began = System.nanoTime();

    volatile Session session;
    /** Said before it has a session. */
    private volatile boolean unwanted;
    /** The program does not want it any more; what is left is to learn how it ended. */
    boolean over;
    /** Under which name it was sent on the present connection; 0: it was not. */
    long tag;
    long sent;
    /** The server has said that it waits, on this connection. */
    private boolean stands;
    /** The sticky lock that it is for, or null. */
    Stay stay;
    /** Whether it was sent so as to wait. */
    boolean queued;
    boolean sentEver;
    /** It was sent on a connection that is gone. */
    boolean sentBefore;
    /** The server renews what it grants, on the present connection. */
    boolean byServer;
    /** Its time is over, and the server has still to say how it ended. */
    boolean calledOff;
    /** The token of a grant that is not given to the program yet. */
    long token;
    /** What it became. */
    Holding given;
    Future<?> timer;
    /** Whether it is wanted, from the grant on; null: it is not to be notified of that. */
    Wanted wanted;
    /** When the server has taken it no older hold of the owner is left, which it would be given in place of a new one. */
    private CompletableFuture<Void> before = CompletableFuture.completedFuture(null);
    /** On this connection it comes behind that. */
    private Wire behindIt;

    Asking(Request request, String owner, Job job, Job.Place place) {
        this.request = request;
        this.job = job;
        this.place = place;
        target = new Target(request, owner);
    }

    /** Its job may ask anew, when the server has answered that this one is over. */
    void giveUp() {
        unwanted = true;
        if (job != null) {
            job.giveUp(place);
        }
    }

    boolean isUnwanted() {
        return unwanted;
    }

    void stands(boolean stands) {
        this.stands = stands;
        if (stands && stay != null) {
            stay.stands();
        }
    }

    boolean stands() {
        return stands && tag != 0 && session.listens();
    }

    boolean waits() {
        return request.wait != 0;
    }

    /** How long to wait on, in ms; -1 for ever, 0 no more. */
    long left() {
        return request.wait == Request.FOR_EVER
                ? Request.FOR_EVER
                : Math.max(0, Millis.until(Millis.after(began, request.wait)));
    }

    @Override
    public long lease() {
        return request.lease;
    }

    @Override
    public boolean byServer() {
        return byServer;
    }

    /** What ends its owner's last hold of the lock is said on this connection, ahead of it. */
    void comesBehind(PendingCommand last, Wire wire) {
        if (job != null) {
            before = last.taken;
            behindIt = wire;
        }
    }

    /** Whether it may be said there; else {@link #before} has to come first. */
    boolean maySay(Wire wire) {
        return before.isDone() || wire == behindIt;
    }

    /** At once if there is nothing before it. */
    void behindThat(Runnable next) {
        before.whenComplete((nothing, error) -> next.run());
    }

    /** Not under the monitor: who waits for it wakes at once, and wants that. */
    void complete() {
        if (given != null) {
            end.complete(given);
        }
    }

    /** Its job may ask for the same key again. */
    void leave() {
        if (job != null) {
            behindThat(() -> job.leave(request, place));
        }
    }

    /** That too, when the server has taken what ends it. */
    void leaveBehind(PendingCommand last) {
        giveUp();
        last.taken.whenComplete((nothing, error) -> leave());
    }
}

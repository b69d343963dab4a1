package dev.rlock;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;

/**
 * What a request became: one hold of the server's, for one or more of the program's
 * ({@link Hold#again}). What changes is guarded by the lock of its session.
 */
final class Holding implements Ticket {
    final Object lock;
    /** In a cluster another one, where its slot has moved while the connection was away. */
    Session session;
    final Request request;
    final Target target;
    /** Null also once it has given way: then the request has its place. */
    private Job job;
    private final Job.Place place;
    final long token;
    final long since = System.nanoTime();
    /** Its name on the present connection; 0: it has none there. */
    long tag;
    /** Asks for it on a new connection, until that is answered. */
    PendingCommand regaining;
    /** And it was: a server that was restarted does not know its token. */
    boolean regained;
    /** Of the program's holds, those that are not released. */
    int holds = 1;
    boolean released;
    private long lease;
    /** The server renews it, and it ends with its connection. */
    boolean byServer;
    /** The program's own renewals that are under way. */
    int renewals;
    /** Not by the server: when it ends unless it is renewed. */
    private volatile long deadline;
    /** From when that counts: what renewed it last was sent then. */
    private long renewed;
    private volatile long awake;
    /** Until when it is to be held, whoever ends it here; null: for no time. */
    Long least;
    /** Ends it at its deadline. */
    Future<?> timer;
    /** And at the request's max. */
    Future<?> atMost;

    /** Why it was lost, or null. */
    volatile String lost;
    /** Whether somebody waits for it; null: the program never wanted to know. */
    volatile Wanted wanted;
    /** The sticky lock that it is of, or null. */
    private final Stay stay;
    private CompletableFuture<LostException> onLost;
    /** What the program has of it: one, however often it asks. */
    private CompletionStage<LostException> seen;

    Holding(Asking asking, Session session) {
        this.session = session;
        lock = session.lock;
        request = asking.request;
        target = asking.target;
        job = asking.job;
        place = asking.place;
        token = asking.token;
        tag = asking.tag;
        lease = request.lease;
        byServer = asking.byServer;
        wanted = asking.wanted;
        stay = asking.stay;
        lease(lease, asking.sent);
    }

    @Override
    public long lease() {
        return lease;
    }

    @Override
    public boolean byServer() {
        return byServer;
    }

    /** By this session, for the server does not. */
    boolean isRenewed() {
        return request.watchdog && !byServer;
    }

    void lease(long lease, long from) {
        this.lease = lease;
        renewed = from;
        awake = Asleep.mark();
        deadline = Millis.after(from, lease);
    }

    long renewed() {
        return renewed;
    }

    long left() {
        return Millis.until(deadline);
    }

    /** How long it is to be held still. */
    long rest() {
        return least == null ? 0 : Millis.until(least);
    }

    /** Whether it is lost by now, and nobody has seen to that. */
    boolean isOver() {
        return lost == null && !byServer && System.nanoTime() + Asleep.since(awake) - deadline >= 0;
    }

    /** Why it was lost, or null; the clock is asked here and not only the timer, which may be late. */
    String lost() {
        if (isOver()) {
            synchronized (lock) {
                session.holds.lose(this, "lease");
            }
        }
        return lost;
    }

    /** For good; false if it was lost or released before. */
    boolean lose(String reason) {
        if (lost != null || released) {
            return false;
        }
        giveUp(); // before anybody sees that it is lost, and asks anew
        lost = reason;
        notifyLost();
        if (stay != null) {
            stay.lost(reason);
        }
        return true;
    }

    private void notifyLost() {
        if (onLost != null) {
            // Not by this thread: it reads the connection, and holds a monitor.
            onLost.completeAsync(this::loss, CallbackExecutor.POOL);
        }
    }

    /** It is found out while its release is under way, which reports it. */
    void wasLost(String reason) {
        lost = reason;
    }

    /** It was released so as to be asked for again, which was in vain. */
    void gaveWayInVain(String reason) {
        if (lost == null) {
            lost = reason;
        }
        notifyLost();
    }

    /** The server has said that somebody waits for it. */
    void wanted() {
        if (wanted != null) {
            wanted.said(lease);
        }
        if (stay != null) {
            stay.look();
        }
    }

    /** Why it cannot give way, whoever waits; null: it can. */
    String unfitToGiveWay() {
        if (target.several()) {
            return "a hold of several keys cannot give way";
        } else if (holds > 1) {
            return request.key() + " is held more than once: release the others first, for all of them would give way";
        } else if (job != null && job.hasBeside(place)) {
            return "a lock that its thread both reads and writes cannot give way";
        }
        return null;
    }

    /** What asks for it again, by the owner of its job, of which it takes the place. */
    Asking anew(Request again) {
        var asking = new Asking(again, job == null ? Owner.fresh() : job.owner(), job, place);
        asking.wanted = new Wanted();
        job = null;
        return asking;
    }

    /** Whoever wants to know of the loss of the one that gave way for this learns of the loss of this one. */
    void takeOver(Holding before) {
        onLost = before.onLost;
        seen = before.seen;
        if (lost != null) {
            notifyLost();
        }
    }

    /**
     * A new one for each who is notified: a body that threw the one which its scope's {@code close}
     * throws too would get an error of Java's own in its place.
     */
    LostException loss() {
        return new LostException(request.key(), lost);
    }

    /** Completes when it is lost, by another thread. */
    CompletionStage<LostException> lostLater() {
        synchronized (lock) {
            if (onLost == null) {
                onLost = lost == null ? new CompletableFuture<>() : CompletableFuture.completedFuture(loss());
                seen = onLost.minimalCompletionStage();
            }
            return seen;
        }
    }

    /** It is over here; its job may ask anew, which comes behind the end. */
    void giveUp() {
        if (timer != null) {
            timer.cancel(false);
        }
        if (atMost != null) {
            atMost.cancel(false);
        }
        if (wanted != null) {
            wanted.over();
        }
        if (job != null) {
            job.giveUp(place);
        }
    }

    /** @param last what ends it at the server, or null */
    void leaveBehind(PendingCommand last) {
        if (job != null && last != null) {
            last.taken.whenComplete((nothing, error) -> job.leave(request, place));
        } else if (job != null) {
            job.leave(request, place);
        }
    }
}

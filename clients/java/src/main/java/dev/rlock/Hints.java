package dev.rlock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Has the server say that somebody waits for a hold (WANTED), from the first time on that the program wants to know.
 * Under the session's lock.
 */
final class Hints {
    /** What the server does not do now it is asked for again after so long, in ms. */
    private static final long AGAIN = 1_000;

    private final Session session;

    Hints(Session session) {
        this.session = session;
    }

    Wanted of(Holding holding) {
        if (holding.wanted == null) {
            holding.wanted = new Wanted();
            ask(holding);
        }
        return holding.wanted;
    }

    /**
     * Once on each connection, by the tag and the lease that the hold has. While a renewal is under way nobody knows what
     * lease that is: it is asked behind that.
     */
    void ask(Holding holding) {
        synchronized (session.lock) {
            Wire by = session.wire();
            boolean isNew = holding.wanted != null && holding.wanted.askedBy != by;
            boolean isSettled = holding.renewals == 0 && !holding.isRenewed();
            if (!isNew || !isSettled || !session.listens() || !session.knows(holding.tag, holding) || !says(holding)) {
                return;
            }
            long lease = holding.byServer ? holding.lease() : Math.max(1, holding.left());
            by.call(holding.target.renew(lease, words(holding, holding.byServer))).whenComplete((one, error) -> {
                synchronized (session.lock) {
                    String refusal = Reply.refusal(error);
                    if (refusal != null && by == session.wire() && !isRefused(holding.wanted, by, refusal)) {
                        failed(holding, refusal);
                    }
                }
            });
        }
    }

    private void failed(Holding holding, String refusal) {
        if (Reply.noMaster(refusal)) {
            session.breakLater();
            return;
        }
        session.holds.regainAnswered(holding, refusal);
        session.timer.schedule(() -> holding.session.hints.ask(holding), AGAIN, TimeUnit.MILLISECONDS);
    }

    /** Whether it is to be asked here. MRENEW has not the word. */
    private boolean says(Holding holding) {
        return holding.wanted != null && session.wire().hearsWanted() && !holding.target.several();
    }

    /**
     * What a RENEW says to have the hold notified of on the present connection.
     *
     * @param watched by the server, from now on or still
     */
    Object[] words(Holding holding, boolean watched) {
        var words = new ArrayList<Object>(List.of("NOTIFY", session.channel(), holding.tag));
        if (watched) {
            words.add("WATCHDOG");
        }
        if (says(holding)) {
            words.add("WANTED");
            holding.wanted.askedBy = session.wire();
        }
        return words.toArray();
    }

    /** What a request says so that its hold is notified of that from the grant on. What was said before is nothing then. */
    Object[] words(Asking asking) {
        if (asking.wanted == null || !session.wire().hearsWanted()) {
            return new Object[0];
        }
        asking.wanted = new Wanted();
        asking.wanted.askedBy = session.wire();
        return new Object[] {"WANTED"};
    }

    /** Whether it is the word that was refused: the server is too old, or does not let us say it. */
    boolean isRefused(Wanted wanted, Wire by, String refusal) {
        if (wanted == null || wanted.askedBy != by) {
            return false;
        }
        wanted.askedBy = null;
        boolean refused = refusal.startsWith("NOPERM") || isUnknown(refusal);
        if (refused) {
            by.hearsNoWanted();
        }
        return refused;
    }

    /** So an older module says that it does not know the word. */
    static boolean isUnknown(String refusal) {
        return refusal.startsWith("ERR syntax error");
    }
}

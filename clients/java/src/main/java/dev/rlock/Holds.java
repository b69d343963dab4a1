package dev.rlock;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** The holds of a session, from the grant to the release or the loss. */
final class Holds {
    private final Session session;
    private final long timeout;
    /** Those without WATCHDOG: they outlive their connection. */
    private final Set<Holding> plain = new LinkedHashSet<>();

    Holds(Session session, long timeout) {
        this.session = session;
        this.timeout = timeout;
    }

    void begin(Holding holding) {
        if (!holding.request.watchdog) {
            plain.add(holding);
        }
        scheduleEnd(holding);
    }

    private void scheduleEnd(Holding holding) {
        if (holding.timer != null) {
            holding.timer.cancel(false);
        }
        if (!holding.request.watchdog) {
            holding.timer =
                    session.timer.schedule(holding::lost, Math.max(0, holding.left()), TimeUnit.MILLISECONDS);
        } else if (holding.request.max != 0) {
            holding.timer =
                    session.timer.schedule(() -> atMost(holding), holding.request.max, TimeUnit.MILLISECONDS);
        }
    }

    private void atMost(Holding holding) {
        synchronized (session) {
            if (lose(holding, "max")) {
                session.run(release(holding, false));
            }
        }
    }

    /** False if it was lost or released before. */
    boolean lose(Holding holding, String reason) {
        synchronized (session) {
            session.forget(holding.tag, holding);
            plain.remove(holding);
            return holding.lose(reason);
        }
    }

    /** By the server. */
    void told(Holding holding, String reason) {
        boolean news = lose(holding, reason);
        if (reason.equals("demoted") || reason.equals("moved")) {
            // Where the lock is now it may still be held.
            if (news) {
                session.run(release(holding, true));
            }
            if (reason.equals("demoted")) {
                session.breakLater(); // the address may soon lead to the master
            }
        }
    }

    void broke(Holding holding) {
        holding.tag = 0;
        if (holding.request.watchdog && lose(holding, "connection")) {
            session.run(release(holding, true));
        }
    }

    /** @param lost it may be that the server knows no more of it, or has it for another tag */
    private static Errand release(Holding holding, boolean lost) {
        Target target = holding.target;
        return new Errand(
                holding.request.key(), true, lost ? target.releaseAll() : target.release(holding.token));
    }

    /** Completes when the server has released it, or will by itself. */
    CompletableFuture<Void> release(Holding holding) {
        synchronized (session) {
            LostException lost = holding.lost();
            if (lost == null && holding.released) {
                return CompletableFuture.completedFuture(null);
            }
            if (lost == null) {
                return end(holding, release(holding, false));
            }
            if (!holding.released && holding.request.keys.size() > 1) {
                session.run(release(holding, true)); // the others of its keys
            }
            holding.released = true;
            return CompletableFuture.failedFuture(lost);
        }
    }

    /** Over for the program; the server ends it after so many ms. */
    CompletableFuture<Void> releaseAfter(Holding holding, long millis) {
        synchronized (session) {
            LostException lost = holding.lost();
            if (lost != null) {
                return CompletableFuture.failedFuture(lost);
            }
            var errand = new Errand(holding.request.key(), true, holding.target.renew(millis));
            return end(holding, errand).handle((nothing, error) -> {
                if (error instanceof RefusedException refused && refused.code().equals("NOTHELD")) {
                    throw new LostException(holding.request.key(), "expired");
                } else if (error instanceof RlockException other) {
                    throw other;
                }
                return null;
            });
        }
    }

    private CompletableFuture<Void> end(Holding holding, Errand errand) {
        holding.released = true;
        session.forget(holding.tag, holding);
        plain.remove(holding);
        session.run(errand);
        // Behind the errand, so that what the job asks for next comes after it.
        holding.leave();
        return errand.over;
    }

    CompletableFuture<Void> renew(Holding holding, long lease) {
        synchronized (session) {
            if (holding.lost() != null || holding.released) {
                return CompletableFuture.failedFuture(
                        holding.lost() != null ? holding.lost() : new IllegalStateException("the hold is released"));
            }
            var errand = new Errand(holding.request.key(), false, holding.target.renew(lease));
            var ends = session.timer.schedule(() -> abandon(errand), timeout, TimeUnit.MILLISECONDS);
            var done = errand.answer.<Void>handle((one, error) -> {
                ends.cancel(false);
                renewed(holding, lease, errand, error);
                return null;
            });
            session.run(errand);
            return done;
        }
    }

    private void abandon(Errand errand) {
        synchronized (session) {
            session.drop(errand);
            errand.answer.completeExceptionally(session.dialler.error());
        }
    }

    private void renewed(Holding holding, long lease, Errand errand, Throwable error) {
        synchronized (session) {
            String text = Reply.refusal(error);
            if (text != null && text.startsWith("NOTHELD")) {
                lose(holding, "expired");
            }
            if (holding.lost() != null) {
                throw holding.lost();
            }
            if (text != null) {
                throw Reply.error(text);
            }
            if (error instanceof RlockException wrong) {
                throw wrong;
            }
            if (session.knows(holding.tag, holding)) {
                session.uncount(holding.lease());
                session.count(lease);
            }
            holding.lease(lease, errand.sent);
            if (!holding.request.watchdog) {
                scheduleEnd(holding);
            }
        }
    }

    void close(Holding holding) {
        if (lose(holding, "closed")) {
            session.run(release(holding, false));
        }
    }

    void closePlain() {
        List.copyOf(plain).forEach(this::close);
    }
}

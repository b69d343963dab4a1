package dev.rlock;

import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** The holds of a session, from the grant to the release or the loss. */
final class Holds {
    private final Session session;
    private final long timeout;
    /** Those that the server does not renew: they outlive their connection. */
    private final Set<Holding> plain = new LinkedHashSet<>();
    private final Renewals renewals;
    /** Of each key one of them. */
    private final Map<String, Holding> byKey = new HashMap<>();

    Holds(Session session, long timeout) {
        this.session = session;
        this.timeout = timeout;
        renewals = new Renewals(session, this::regain);
    }

    void begin(Holding holding) {
        know(holding);
        scheduleEnd(holding);
        if (holding.request.watchdog && holding.request.max != 0) {
            holding.atMost = session.timer.schedule(
                    () -> holding.session.holds.lose(holding, "max"), holding.request.max, TimeUnit.MILLISECONDS);
        }
    }

    private void know(Holding holding) {
        if (!holding.byServer) {
            plain.add(holding);
        }
        if (holding.isRenewed()) {
            renewals.add(holding);
        }
        holding.request.keys.forEach(key -> byKey.put(key, holding));
    }

    private void unknow(Holding holding) {
        plain.remove(holding);
        renewals.remove(holding);
        holding.request.keys.forEach(key -> byKey.remove(key, holding));
    }

    /** The owner who holds one of them here, or null. */
    String holder(List<String> keys) {
        return keys.stream().map(byKey::get).filter(Objects::nonNull).findFirst()
                .map(holding -> holding.target.owner()).orElse(null);
    }

    private void scheduleEnd(Holding holding) {
        if (holding.timer != null) {
            holding.timer.cancel(false);
        }
        if (!holding.byServer) {
            holding.timer =
                    session.timer.schedule(holding::lost, Math.max(0, holding.left()), TimeUnit.MILLISECONDS);
        }
    }

    /** False if it was lost or released before. What the server may have of it still is released. */
    boolean lose(Holding holding, String reason) {
        synchronized (session.lock) {
            forget(holding);
            if (!holding.lose(reason)) {
                return false;
            }
            PendingCommand last = lastOf(holding, reason);
            if (last != null) {
                session.pending.run(last);
            }
            holding.leaveBehind(last);
            return true;
        }
    }

    private static PendingCommand lastOf(Holding holding, String reason) {
        return switch (reason) {
            case "max", "closed", "lease" -> release(holding, holding.regained);
            case "connection", "demoted", "moved" -> release(holding, true); // it may be held still, where the lock is now
            // Of several keys one is lost, and nobody counts on the others any more.
            default -> holding.request.keys.size() > 1 ? release(holding, true) : null;
        };
    }

    private void forget(Holding holding) {
        session.forget(holding.tag, holding);
        unknow(holding);
        if (holding.regaining != null) {
            session.pending.drop(holding.regaining);
        }
    }

    /** By the server. */
    void notified(Holding holding, String word, String rest) {
        if (word.equals("lost")) {
            lostThere(holding, rest);
        } else if (word.equals("wanted")) {
            holding.wanted();
        }
    }

    private void lostThere(Holding holding, String reason) {
        lose(holding, reason);
        if (reason.equals("demoted")) {
            session.breakLater(); // the address may soon lead to the master
        }
    }

    void broke(Holding holding) {
        holding.tag = 0;
        if (!holding.byServer) {
            regain(holding);
        } else {
            lose(holding, "connection");
        }
    }

    /**
     * A hold that outlives its connection is asked for on the next one. Its deadline stays: the server
     * is given what is left of it. One that this session renews is renewed so too, to its whole lease.
     */
    private void regain(Holding holding) {
        if (holding.regaining != null) {
            return;
        }
        var asked = new PendingCommand(holding.request.key(), PendingCommand.Kind.REGAIN) {
            boolean byServer;
            long lease;

            @Override
            List<Wire.Command> commands(Session on) {
                // MRENEW gives no watchdog.
                byServer = holding.request.watchdog && !holding.target.several() && on.wire().plain() == null;
                lease = holding.isRenewed() ? holding.lease() : Math.max(1, holding.left());
                return List.of(on.holds.regainOn(holding, lease, byServer));
            }

            @Override
            boolean saysLess(Session on, Wire by, String refusal) {
                return on.hints.isRefused(holding.wanted, by, refusal);
            }
        };
        holding.regaining = asked;
        asked.answer.whenComplete((one, error) -> {
            synchronized (session.lock) {
                holding.regaining = null;
                if (error == null) {
                    holding.session.holds.regained(holding, asked.lease, asked.sent, asked.byServer);
                } else {
                    regainAnswered(holding, Reply.refusal(error));
                }
            }
        });
        session.pending.run(asked);
    }

    /** Subscribes to its loss on the present connection, by a new tag. */
    private Wire.Command regainOn(Holding holding, long lease, boolean byServer) {
        Session from = holding.session;
        from.forget(holding.tag, holding);
        if (from != session) { // its slot has moved meanwhile
            from.holds.unknow(holding);
            know(holding);
            holding.session = session;
        }
        holding.tag = session.put(holding);
        holding.regained = true;
        return holding.target.renew(lease, session.hints.words(holding, byServer && !holding.byServer));
    }

    /** @param byServer which renews it from now on */
    private void regained(Holding holding, long lease, long sent, boolean byServer) {
        if (holding.lost() != null || holding.released || !holding.isRenewed()) {
            return;
        }
        holding.lease(lease, sent);
        if (byServer) {
            session.uncount(holding.counted());
            unknow(holding);
            holding.byServer = true;
            know(holding);
            session.count(holding.counted());
            session.hints.ask(holding);
        }
        scheduleEnd(holding);
    }

    /** What the server answers to that. */
    void regainAnswered(Holding holding, String refusal) {
        String reason = refusal == null ? null : gone(holding, refusal);
        if (reason != null && !holding.session.holds.lose(holding, reason) && holding.released && holding.lost == null) {
            holding.wasLost(reason);
        }
    }

    /** Why a hold is no more, if a refusal says so; null: it may be. */
    private String gone(Holding holding, String refusal) {
        boolean plain = session.wire() != null && session.wire().plain() != null;
        if (plain && refusal.startsWith("WRONGTYPE")) {
            return "overwritten";
        } else if (!refusal.startsWith("NOTHELD")) {
            return null;
        }
        // The answer may be read before the timer sees that this program stood still.
        return !plain ? "expired" : holding.isOver() ? "lease" : "deleted";
    }

    /** By another channel of the same connection, also those that the server renews. */
    void regainAll() {
        for (Holding holding : session.holdings()) {
            if (holding.byServer) {
                regainByServer(holding);
            } else {
                regain(holding);
            }
        }
    }

    private void regainByServer(Holding holding) {
        Wire by = session.wire();
        by.call(regainOn(holding, holding.lease(), true)).whenComplete((one, error) -> {
            String text = Reply.refusal(error);
            synchronized (session.lock) {
                if (text == null || by != session.wire()) {
                    return; // subscribed from now on, or the connection broke
                } else if (session.hints.isRefused(holding.wanted, by, text)) {
                    regainByServer(holding);
                } else if (text.startsWith("NOTHELD")) {
                    regainAnswered(holding, text);
                } else if (text.startsWith("MOVED") || text.startsWith("ASK")) {
                    lostThere(holding, "moved");
                } else {
                    session.breakLater();
                }
            }
        });
    }

    /** @param lost it may be that the server knows no more of it, or has it for another tag */
    private static PendingCommand release(Holding holding, boolean lost) {
        Target target = holding.target;
        return new PendingCommand(holding.request.key(), PendingCommand.Kind.CLEANUP) {
            @Override
            List<Wire.Command> commands(Session on) {
                long rest = holding.rest();
                return List.of(rest > 0 ? target.renew(rest) : lost ? target.releaseAll() : target.release(holding.token));
            }
        };
    }

    /** Completes when the server has released it, or will by itself. */
    CompletableFuture<Void> release(Holding holding) {
        synchronized (session.lock) {
            boolean lost = holding.lost() != null;
            if (!lost && holding.released) {
                return CompletableFuture.completedFuture(null);
            }
            if (!lost) {
                return end(holding, release(holding, holding.regained));
            }
            holding.released = true;
            return CompletableFuture.failedFuture(holding.loss());
        }
    }

    /** Releases it, and sends the request, perhaps of the same owner, right behind that. Completes as the release does. */
    CompletableFuture<Void> giveWay(Holding holding, Asking asking) {
        var last = release(holding, holding.regained);
        asking.comesBehind(last, session.wire());
        return Wire.inOneWrite(session.wire(), () -> {
            var released = end(holding, last);
            session.router.ask(asking);
            return released;
        });
    }

    /** Releases one whose token nobody need know. */
    CompletableFuture<Void> goBack(Holding holding) {
        return end(holding, release(holding, true));
    }

    private CompletableFuture<Void> end(Holding holding, PendingCommand pending) {
        holding.released = true;
        var leaving = new Leaving(holding, holding.lease());
        boolean listening = session.replace(holding.tag, holding, leaving);
        forget(holding);
        holding.giveUp();
        session.pending.run(pending);
        holding.leaveBehind(pending);
        return pending.over.handle((nothing, error) -> {
            if (listening) {
                synchronized (session.lock) {
                    session.forget(holding.tag, leaving);
                }
            }
            if (error instanceof RefusedException refused && gone(holding, refused.getMessage()) != null) {
                throw new LostException(holding.request.key(), gone(holding, refused.getMessage()));
            } else if (error instanceof RlockException refused) {
                throw refused;
            } else if (holding.lost != null) {
                throw holding.loss(); // the reply to what asked for it came first
            }
            return null;
        });
    }

    CompletableFuture<Void> renew(Holding holding, long lease) {
        synchronized (session.lock) {
            if (holding.lost() != null || holding.released) {
                return CompletableFuture.failedFuture(
                        holding.lost() != null ? holding.loss() : new IllegalStateException("the hold is released"));
            }
            var pending = new PendingCommand(holding.request.key(), PendingCommand.Kind.RENEW, holding.target.renew(lease));
            var ends = Late.after(session.timer, () -> abandon(pending), timeout);
            var done = pending.answer.<Void>handle((one, error) -> {
                ends.cancel(false);
                renewed(holding, lease, pending, error);
                return null;
            });
            done.whenComplete((nothing, error) -> holding.session.hints.ask(holding));
            holding.renewals++;
            session.pending.run(pending);
            return done;
        }
    }

    private void abandon(PendingCommand pending) {
        synchronized (session.lock) {
            session.pending.drop(pending);
            pending.answer.completeExceptionally(session.dialler.error());
        }
    }

    private void renewed(Holding holding, long lease, PendingCommand pending, Throwable error) {
        synchronized (session.lock) {
            holding.renewals--;
            String text = Reply.refusal(error);
            if (text != null && gone(holding, text) != null) {
                holding.session.holds.lose(holding, gone(holding, text));
            }
            if (holding.lost() != null) {
                throw holding.loss();
            }
            if (text != null) {
                throw Reply.error(text);
            }
            if (error instanceof RlockException wrong) {
                throw wrong;
            }
            Session now = holding.session;
            if (now.knows(holding.tag, holding)) {
                now.uncount(holding.counted());
                now.count(Heartbeat.counted(lease, holding.byServer()));
            }
            holding.lease(lease, pending.sent);
            if (!holding.byServer) {
                scheduleEnd(holding);
            }
        }
    }

    void close(Holding holding) {
        lose(holding, "closed");
    }

    void closePlain() {
        List.copyOf(plain).forEach(this::close);
    }
}

package dev.rlock;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import java.util.function.Supplier;

/**
 * Tokens of the uses of one acquisition of a sticky lock. That of the acquisition is for the first use that reads it; each other
 * one asks for a new one. Under the session's lock.
 */
final class StayTokens {
    private final Stay stay;
    private final Holding holding;
    private final ScheduledExecutorService timer;
    private final long timeout;
    private boolean read;
    /** What the token is nobody knows: the lock goes back at the end of this use. */
    private boolean unsure;
    /** Of the uses that ask, or the last one that has. */
    private final Map<Turn, CompletableFuture<Long>> asked = new HashMap<>();

    StayTokens(Stay stay, Holding holding, ScheduledExecutorService timer, long timeout) {
        this.stay = stay;
        this.holding = holding;
        this.timer = timer;
        this.timeout = timeout;
    }

    boolean areUnsure() {
        return unsure;
    }

    CompletableFuture<Long> of(Turn turn) {
        var before = asked.get(turn);
        if (before != null && !before.isCompletedExceptionally()) {
            return before;
        }
        asked.values().removeIf(CompletableFuture::isDone);
        var token = read ? ask(turn) : CompletableFuture.completedFuture(holding.token);
        read = true;
        asked.put(turn, token);
        return token;
    }

    private CompletableFuture<Long> ask(Turn turn) {
        var token = new CompletableFuture<Long>();
        Wire by = holding.session.wire();
        if (by == null) {
            failed(token, new ConnectionException("there is no connection to ask for a token by", null));
            return token;
        }
        var late = Late.after(timer, () -> failed(token, new ConnectionException("the server has not replied a token", null)), timeout);
        by.call(holding.target.renewWithToken(holding.lease())).whenComplete((reply, error) -> {
            late.cancel(false);
            String refusal = Reply.refusal(error);
            if (error == null && reply instanceof Long number) {
                token.complete(number);
            } else {
                refused(token, refusal);
            }
        });
        return token;
    }

    private void refused(CompletableFuture<Long> token, String refusal) {
        synchronized (holding.lock) {
            if (refusal != null && !token.isDone()) {
                holding.session.holds.regainAnswered(holding, refusal); // it may be gone
            }
            String lost = holding.lost();
            failed(token, lost != null ? holding.loss()
                    : refusal != null ? Reply.error(refusal)
                    : new ConnectionException("the connection broke before there was a token", null));
        }
    }

    private void failed(CompletableFuture<Long> token, RlockException why) {
        synchronized (holding.lock) {
            if (token.completeExceptionally(why)) {
                unsure = true;
                stay.look();
            }
        }
    }

    /** Who waits for one waits no more. */
    void fail(Supplier<RlockException> why) {
        asked.values().forEach(token -> token.completeExceptionally(why.get()));
    }
}

package dev.rlock;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * A hold gives way: it is released, and asked for again behind whoever waits. Until that is granted it is over. What
 * changes is guarded by the lock of its session.
 */
final class Way implements Asked<Boolean> {
    private final Hold hold;
    private final Asks asks;
    private final Holding before;
    private final Asking asking;
    private CompletableFuture<Holding> end;

    private Way(Hold hold, Asks asks, Holding before, Request again) {
        this.hold = hold;
        this.asks = asks;
        this.before = before;
        asking = before.anew(again);
    }

    /**
     * Begins, if somebody waits and the hold is old enough; else null.
     *
     * @param wait null: for ever
     */
    static Way of(Hold hold, Asks asks, Duration wait, Duration least) {
        Request request = hold.holding.request;
        Request again = wait == null ? request.waitingForEver() : request.waiting(wait);
        long young = least.isZero() ? 0 : Millis.of(least, "the least time");
        synchronized (hold.holding.lock) {
            Holding before = hold.holding;
            if (before.lost() != null) {
                throw before.loss();
            } else if (hold.isReleased()) {
                throw new LostException(request.key(), "released");
            }
            String unfit = before.unfitToGiveWay();
            if (unfit != null) {
                throw new IllegalStateException(unfit);
            }
            boolean wanted = before.session.hints.of(before).isNow();
            boolean old = Millis.until(Millis.after(before.since, young)) <= 0 && before.rest() <= 0;
            return wanted && old ? begun(new Way(hold, asks, before, again.lease(Duration.ofMillis(before.lease())))) : null;
        }
    }

    private static Way begun(Way way) {
        try {
            way.begin();
            return way;
        } catch (Throwable error) { // no memory
            way.before.session.holds.release(way.before);
            way.giveUp();
            throw error;
        }
    }

    private void begin() {
        hold.way = this;
        end = asking.end.handle(this::ended);
        asks.begin(asking);
        before.session.holds.giveWay(before, asking).whenComplete((nothing, error) -> {
            // What could not be released, or was lost before that, is not acquired anew.
            if (Thrown.cause(error) instanceof RlockException why) {
                asks.giveUp(asking, why);
            }
        });
    }

    private Holding ended(Holding granted, Throwable error) {
        synchronized (before.lock) {
            hold.way = null;
            if (granted != null && !granted.released) {
                granted.takeOver(before);
                hold.holding = granted;
                return granted;
            }
            Throwable why = granted == null ? Thrown.cause(error) : released(); // by the program, meanwhile
            hold.gaveWayInVain(why instanceof LostException lost ? lost.reason() : "released");
            throw new CompletionException(why);
        }
    }

    private LostException released() {
        return new LostException(asking.request.key(), "released");
    }

    @Override
    public Asking asking() {
        return asking;
    }

    @Override
    public CompletableFuture<Holding> end() {
        return end;
    }

    @Override
    public Boolean of(Holding granted) {
        return true;
    }

    /** However it ends otherwise: nothing is left, and the hold is over. */
    @Override
    public void giveUp() {
        Calls.run(() -> {
            asks.giveUp(asking, released());
            synchronized (before.lock) {
                hold.gaveWayInVain("released");
            }
        });
    }
}

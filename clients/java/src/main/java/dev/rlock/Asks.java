package dev.rlock;

import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;

/** The requests of some {@link Locks}, from the program's call to the hold that it gets, whatever ends the call. */
final class Asks {
    private final Router router;
    private final ScheduledThreadPoolExecutor timer;
    private final long timeout;
    /** Those that are not over. */
    private final Set<Asking> asked = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    Asks(Router router, ScheduledThreadPoolExecutor timer, long timeout) {
        this.router = router;
        this.timer = timer;
        this.timeout = timeout;
    }

    /** However the wait ends without the hold, the request is cancelled. */
    Hold await(Asking asking) throws InterruptedException {
        try {
            return new Hold(Wait.get(asking.end, false));
        } catch (ExecutionException error) {
            throw Hold.unwrapped(error.getCause());
        } catch (Throwable error) {
            giveUp(asking);
            throw error;
        } finally {
            asked.remove(asking);
        }
    }

    /** The same, but that an interrupt does not end the wait. */
    Hold awaitUninterruptibly(Asking asking) {
        try {
            return new Hold(Wait.join(asking.end, false));
        } catch (CompletionException error) {
            throw Hold.unwrapped(error);
        } catch (Throwable error) {
            giveUp(asking);
            throw error;
        } finally {
            asked.remove(asking);
        }
    }

    /** In the form of {@link Locks#acquireAsync}. */
    HoldFuture future(Request request) {
        var future = new HoldFuture();
        Asking asking;
        try {
            asking = asked(request, request.job, new Job.Place());
        } catch (RlockException error) { // held by the job
            future.completeExceptionally(error);
            return future;
        }
        try {
            answer(asking, future);
        } catch (Throwable error) {
            forsake(asking);
            throw error;
        }
        return future;
    }

    private void answer(Asking asking, HoldFuture future) {
        asking.end.whenCompleteAsync((holding, error) -> {
            asked.remove(asking);
            if (error != null) {
                future.completeExceptionally(error);
            } else {
                var hold = new Hold(holding);
                if (!future.complete(hold)) {
                    hold.releaseAsync();
                }
            }
        }, CallbackExecutor.POOL);
        future.whenComplete((hold, error) -> {
            if (!asking.end.isDone()) {
                giveUp(asking);
            }
        });
    }

    /** @param job where a second request for the place is an error; null: with an owner of its own */
    Asking ask(Request request, Job job, Job.Place place) {
        Room.take();
        return Calls.call(() -> asked(request, job, place));
    }

    private Asking asked(Request request, Job job, Job.Place place) {
        var asking = new Asking(request, job == null ? Owner.fresh() : job.owner(), job, place);
        var before = job == null ? CompletableFuture.<Void>completedFuture(null) : job.take(request, place);
        try {
            ask(asking, before);
        } catch (Throwable error) { // no thread, or no memory
            forsake(asking);
            throw error;
        }
        return asking;
    }

    private void ask(Asking asking, CompletableFuture<Void> before) {
        asked.add(asking);
        if (closed) {
            asking.leave();
            asking.end.completeExceptionally(Session.closedError());
        } else if (before.isDone()) {
            router.ask(asking);
        } else {
            var late = asking.request.wait == Request.FOR_EVER
                    ? null
                    : Late.after(timer, () -> notTaken(asking), Math.max(asking.left(), timeout));
            before.thenRunAsync(() -> {
                if (late != null) {
                    late.cancel(false);
                }
                router.ask(asking);
            }, timer);
        }
    }

    /** Its job's last hold of the key is not over at the server; by the same thread as the asking. */
    private static void notTaken(Asking asking) {
        if (asking.session == null) {
            asking.giveUp();
            asking.end.completeExceptionally(new ConnectionException(
                    "the server has not taken the release of what the job had of " + asking.request.key(), null));
        }
    }

    /** Its caller has an error in the place of it. */
    private void forsake(Asking asking) {
        asked.remove(asking);
        giveUp(asking);
    }

    void giveUp(Asking asking) {
        Calls.run(() -> {
            asking.giveUp(); // which its session sees if it has none yet
            Session session = asking.session;
            if (session != null) {
                session.requests.giveUp(asking, new NotAcquiredException(asking.request.key(), null));
            }
        });
    }

    /** From now on requests fail; false if they do already. */
    boolean close() {
        boolean closes = !closed;
        closed = true;
        return closes;
    }

    /** Those that no session has yet, and then all that sessions have. */
    void endAll() {
        asked.stream().filter(asking -> asking.session == null).forEach(asking -> {
            asking.giveUp();
            asking.end.completeExceptionally(Session.closedError());
        });
        router.sessions().forEach(Session::close);
    }

    /** What was to be asked later, by the timer. */
    void endLate() {
        asked.forEach(asking -> asking.end.completeExceptionally(Session.closedError()));
    }
}

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
    /** Sticky locks that have something, or wait for it. */
    final Set<Stay> stays = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    Asks(Router router, ScheduledThreadPoolExecutor timer, long timeout) {
        this.router = router;
        this.timer = timer;
        this.timeout = timeout;
    }

    /** A hold of its own. */
    private final class Acquired implements Asked<Hold> {
        private final Asking asking;

        Acquired(Asking asking) {
            this.asking = asking;
        }

        @Override
        public Asking asking() {
            return asking;
        }

        @Override
        public CompletableFuture<Holding> end() {
            return asking.end;
        }

        @Override
        public Hold of(Holding granted) {
            return new Hold(granted, Asks.this);
        }

        @Override
        public void giveUp() {
            Asks.this.giveUp(asking, new NotAcquiredException(asking.request.key(), null));
        }
    }

    Hold await(Asking asking) throws InterruptedException {
        return await(new Acquired(asking));
    }

    /** However the wait ends without what was asked for, the request is cancelled. */
    <T> T await(Asked<T> one) throws InterruptedException {
        try {
            return one.of(Wait.get(one.end(), false));
        } catch (ExecutionException error) {
            throw Thrown.unwrapped(error.getCause());
        } catch (Throwable error) {
            one.giveUp();
            throw error;
        } finally {
            asked.remove(one.asking());
        }
    }

    /** The same, but that an interrupt does not end the wait. */
    Hold awaitUninterruptibly(Asking asking) {
        var one = new Acquired(asking);
        try {
            return one.of(Wait.join(one.end(), false));
        } catch (CompletionException error) {
            throw Thrown.unwrapped(error);
        } catch (Throwable error) {
            one.giveUp();
            throw error;
        } finally {
            asked.remove(asking);
        }
    }

    /** In the form of {@link Locks#acquireAsync}. */
    CompletableFuture<Hold> future(Request request) {
        try {
            return future(new Acquired(asked(request, request.job, new Job.Place())));
        } catch (RlockException error) { // held by the job
            return CompletableFuture.failedFuture(error);
        }
    }

    <T> CompletableFuture<T> future(Asked<T> one) {
        try {
            var future = new AskedFuture<T>(() -> {
                if (!one.end().isCompletedExceptionally()) {
                    one.giveUp();
                }
            });
            answer(one, future);
            return future;
        } catch (Throwable error) {
            forsake(one);
            throw error;
        }
    }

    private <T> void answer(Asked<T> one, AskedFuture<T> future) {
        one.end().whenCompleteAsync((holding, error) -> {
            asked.remove(one.asking());
            if (error != null) {
                future.fail(Thrown.cause(error));
            } else if (!future.answer(one.of(holding))) {
                one.giveUp();
            }
        }, CallbackExecutor.POOL);
        // Also by means that do not say so.
        future.whenComplete((value, error) -> {
            if (!one.end().isDone()) {
                one.giveUp();
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
            forsake(new Acquired(asking));
            throw error;
        }
        return asking;
    }

    /** A request that its session has at once. */
    void begin(Asking asking) {
        asked.add(asking);
    }

    void over(Asking asking) {
        asked.remove(asking);
    }

    boolean isClosed() {
        return closed;
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
    private void forsake(Asked<?> one) {
        asked.remove(one.asking());
        one.giveUp();
    }

    void giveUp(Asking asking, RlockException why) {
        Calls.run(() -> {
            asking.giveUp(); // which its session sees if it has none yet
            Session session = asking.session;
            if (session != null) {
                session.requests.giveUp(asking, why);
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
        stays.forEach(Stay::locksClosed);
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

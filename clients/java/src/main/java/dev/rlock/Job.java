package dev.rlock;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Work that takes several locks. They share the job's owner, which is what the server's deadlock
 * detection sees. Made by {@link Locks#job}, given to {@link Request#job}.
 */
public final class Job {
    /** Not the job itself, whose monitor the program may have: who reads the connection would wait for it. */
    private final Object lock = new Object();
    private String owner;
    /** What holds or awaits a place (a key, as a rule), with what completes when that is over. */
    private final Map<Object, Place> places = new HashMap<>();

    Job() {}

    /** One of the job's locks. Once given up it is over as soon as the server has answered so. */
    static final class Place {
        final CompletableFuture<Void> over = new CompletableFuture<>();
        private final Object name;
        private final String owner;
        private boolean givenUp;

        /** By the request's keys. */
        Place() {
            this(null, null);
        }

        /**
         * By a name of its own: a thread may read what it writes.
         *
         * @param owner who has the other of these without the module, or null
         */
        Place(Object name, String owner) {
            this.name = name;
            this.owner = owner;
        }

        String owner() {
            return owner;
        }

        private List<?> names(Request request) {
            return name == null ? request.keys : List.of(name);
        }
    }

    /**
     * The owner of all its locks, as {@code RLOCK.INFO} names it. (Without the module each of them has
     * another: {@link Hold#owner}.) It is made when it is asked for
     * first, by this or by a request: processes that are started from an image have jobs of their
     * own, if none was used before.
     *
     * @return {@code host:pid:uuid}
     */
    public String owner() {
        return Calls.call(() -> {
            synchronized (lock) {
                if (owner == null) {
                    owner = Owner.fresh();
                }
                return owner;
            }
        });
    }

    /**
     * Takes a place for a request; if the one before was given up, the new one may be asked for
     * when {@code before} is over: a grant that crosses the giving up would be taken for its own.
     */
    CompletableFuture<Void> take(Request request, Place place) {
        synchronized (lock) {
            CompletableFuture<Void> before = CompletableFuture.completedFuture(null);
            for (Object name : place.names(request)) {
                Place old = places.get(name);
                if (old != null && !old.givenUp) {
                    throw new HeldByJobException(request.key());
                }
                if (old != null) {
                    before = CompletableFuture.allOf(before, old.over);
                }
            }
            place.names(request).forEach(name -> places.put(name, place));
            return before;
        }
    }

    /** Whether its owner has, or awaits, the lock in another way too, as a thread that writes may read. */
    boolean hasBeside(Place place) {
        synchronized (lock) {
            return place.name instanceof Threads.Place name
                    && places.values().stream().anyMatch(other -> !other.givenUp && name.isBeside(other.name));
        }
    }

    void giveUp(Place place) {
        synchronized (lock) {
            place.givenUp = true;
        }
    }

    void leave(Request request, Place place) {
        synchronized (lock) {
            place.names(request).forEach(name -> places.remove(name, place));
        }
        place.over.complete(null);
    }
}

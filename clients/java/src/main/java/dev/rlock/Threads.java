package dev.rlock;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * What each thread holds by the locks in the form of java.util.concurrent. All locks that a thread
 * holds at a time share one owner, as those of a job do. Kept here and not in the threads, which
 * may outlive the program that these locks are of.
 */
final class Threads {
    final Locks locks;
    /** Those that hold something. */
    private final Map<Thread, Mine> all = Collections.synchronizedMap(new WeakHashMap<>());

    Threads(Locks locks) {
        this.locks = locks;
    }

    /** Used by its thread alone. */
    private record Mine(Job job, Map<Place, Held> held) {}

    /** A name is one lock to read and another to write. */
    record Place(String key, Mode mode) {}

    /** A lock of this thread, so many times. */
    static final class Held {
        final Hold hold;
        int times = 1;
        /** Its thread has asked, and knows that it is lost. */
        boolean toldLost;

        Held(Hold hold) {
            this.hold = hold;
        }
    }

    private Mine mine() {
        return all.get(Thread.currentThread());
    }

    Held held(Place place) {
        Mine mine = mine();
        return mine == null ? null : mine.held.get(place);
    }

    /** That of this thread: a new one when it holds nothing, so that no late message finds its successor. */
    Job job() {
        Mine mine = mine();
        return mine == null ? new Job() : mine.job;
    }

    void put(Place place, Hold hold, Job job) {
        all.computeIfAbsent(Thread.currentThread(), thread -> new Mine(job, new HashMap<>()))
                .held.put(place, new Held(hold));
    }

    void remove(Place place) {
        Mine mine = mine();
        if (mine != null && mine.held.remove(place) != null && mine.held.isEmpty()) {
            all.remove(Thread.currentThread());
        }
    }
}

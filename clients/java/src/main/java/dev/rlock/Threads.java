package dev.rlock;

import java.util.HashMap;
import java.util.Map;

/**
 * What each thread holds by the locks in the form of java.util.concurrent. All locks that a thread
 * holds at a time share one owner, as those of a job do.
 */
final class Threads {
    final Locks locks;
    private final ThreadLocal<Map<Place, Held>> held = ThreadLocal.withInitial(HashMap::new);
    private final ThreadLocal<Job> job = new ThreadLocal<>();

    Threads(Locks locks) {
        this.locks = locks;
    }

    /** A name is one lock to read and another to write. */
    record Place(String key, Mode mode) {}

    /** A lock of this thread, so many times. */
    static final class Held {
        final Hold hold;
        int times = 1;

        Held(Hold hold) {
            this.hold = hold;
        }
    }

    Held held(Place place) {
        return held.get().get(place);
    }

    /** That of this thread: a new one when it holds nothing, so that no late message finds its successor. */
    Job job() {
        Job now = job.get();
        if (now == null || held.get().isEmpty()) {
            now = new Job();
            job.set(now);
        }
        return now;
    }

    void put(Place place, Hold hold) {
        held.get().put(place, new Held(hold));
    }

    void remove(Place place) {
        held.get().remove(place);
        if (held.get().isEmpty()) {
            held.remove();
            job.remove();
        }
    }
}

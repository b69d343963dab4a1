package dev.rlock;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What each thread holds by the locks in the form of java.util.concurrent. All locks that a thread
 * holds at a time share one owner, as those of a job do. Kept here and not in the threads, which
 * may outlive the program that these locks are of.
 */
final class Threads {
    final Asks asks;
    /** Those that hold something. */
    private final Map<Who, Mine> all = new ConcurrentHashMap<>();
    /** Threads that are gone, and had not unlocked all. */
    private final ReferenceQueue<Thread> gone = new ReferenceQueue<>();

    Threads(Asks asks) {
        this.asks = asks;
    }

    /** A thread, and no other one: a program's own kind of thread may have an {@code equals}. */
    private static final class Who extends WeakReference<Thread> {
        private final int hash;

        Who(ReferenceQueue<Thread> gone) {
            super(Thread.currentThread(), gone);
            hash = System.identityHashCode(get());
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            return this == other || other instanceof Who who && get() != null && get() == who.get();
        }
    }

    /** Used by its thread alone. */
    private record Mine(Job job, Map<Place, Held> held) {}

    /** A name is one lock to read and another to write. */
    record Place(String key, Mode mode) {
        boolean isBeside(Object other) {
            return other instanceof Place place && !equals(place) && key.equals(place.key);
        }
    }

    /** A lock of this thread, so many times. */
    static final class Held {
        final Hold hold;
        int times = 1;
        /** Its thread has asked, and knows that it is lost. */
        boolean lossReported;

        Held(Hold hold) {
            this.hold = hold;
        }
    }

    private Mine mine() {
        return all.get(new Who(null));
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
        for (Reference<?> who; (who = gone.poll()) != null; ) {
            all.remove(who);
        }
        all.computeIfAbsent(new Who(gone), who -> new Mine(job, new HashMap<>()))
                .held.put(place, new Held(hold));
    }

    void remove(Place place) {
        Mine mine = mine();
        if (mine != null && mine.held.remove(place) != null && mine.held.isEmpty()) {
            all.remove(new Who(null));
        }
    }
}

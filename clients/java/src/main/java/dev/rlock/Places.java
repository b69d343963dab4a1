package dev.rlock;

import java.util.HashMap;
import java.util.Map;

/**
 * The names of places in queues that outlive the connection on which they were taken. Who asks again
 * on the next one would else stand behind its own old place, which nobody keeps, until that has run
 * out. In a cluster they are those of all nodes: a slot goes from one to another with the queues in it.
 * Guarded by the session's lock.
 */
final class Places {
    /** Of lines that are gone, while their waits go on. */
    private final Map<Line.Of, Left> left = new HashMap<>();

    /** @param until by the clock of {@link System#nanoTime}; then the server has forgotten it */
    private record Left(String name, long until) {
        boolean isOver() {
            return System.nanoTime() - until >= 0;
        }
    }

    /** That which a line had on another connection, or null. */
    String take(Line.Of of) {
        Left its = left.remove(of);
        return its == null || its.isOver() ? null : its.name;
    }

    void leave(Line.Of of, String name) {
        left.values().removeIf(Left::isOver);
        left.put(of, new Left(name, System.nanoTime() + Line.KEPT * Millis.NANOS));
    }
}

package interop.cells;

/** Who holds and who waits. */
public enum Direction {
    REDISSON_HOLDS("Redisson holds, rlock waits"),
    RLOCK_HOLDS("rlock holds, Redisson waits");

    final String text;

    Direction(String text) {
        this.text = text;
    }
}

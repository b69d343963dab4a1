package bench;

/** By what a worker takes locks. */
interface Side {
    /** The key that says who had the lock last. */
    String LAST = "bench:last";

    /** A worker's own way to take the lock and give it back, once. */
    Turn worker(String me) throws Exception;

    /** A turn with a lock of one's own. */
    void warmUp() throws Exception;

    interface Turn {
        /** Who had it before. */
        String take() throws Exception;
    }
}

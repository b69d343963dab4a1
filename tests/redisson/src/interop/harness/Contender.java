package interop.harness;

/**
 * One owner's way to a lock, be it Redisson's or ours. Used by one thread: with Redisson
 * the thread is the owner.
 */
public interface Contender extends AutoCloseable {
    /** In place of a lease: somebody renews it, the client (Redisson) or the server. */
    long WATCHED = -1;

    /** Tries once. */
    boolean tryLock(long leaseMs);

    /** Waits for at most so long. */
    boolean lock(long waitMs, long leaseMs);

    /** Waits for ever. */
    void lock(long leaseMs);

    void unlock();

    /** Whether it waits; `thread` is the one that was sent into lock(). */
    boolean waits(Thread thread);

    @Override
    default void close() {
    }
}

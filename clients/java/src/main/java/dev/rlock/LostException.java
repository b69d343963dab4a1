package dev.rlock;

/** A hold was lost: from then on the program was not alone. */
public final class LostException extends RlockException {
    private static final long serialVersionUID = 1;

    /** The first of its keys. */
    private final String key;
    /** One word. */
    private final String reason;

    LostException(String key, String reason) {
        super(key + ": the hold was lost: " + reason, null);
        this.key = key;
        this.reason = reason;
    }

    /**
     * The lock.
     *
     * @return its key; of a hold of several keys the first
     */
    public String key() {
        return key;
    }

    /**
     * How it was lost: {@code expired}, {@code forced}, {@code deleted}, {@code evicted},
     * {@code flushed}, {@code overwritten}, {@code demoted}, {@code moved}, {@code silent}, {@code rebound} or
     * {@code released} as the server says ({@code silent}: this process was not heard of for its patience,
     * and somebody waited); {@code connection} when the connection broke or proved
     * dead; {@code max} when the time of {@link Request#max} was over; {@code lease} when a lease
     * that was not renewed was over; {@code closed} when the {@link Locks} were closed. A server without
     * the module says nothing: there a renewal finds that it is gone, {@code deleted}, or
     * {@code overwritten}.
     *
     * @return one of these words
     */
    public String reason() {
        return reason;
    }
}

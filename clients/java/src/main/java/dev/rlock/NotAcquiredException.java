package dev.rlock;

import java.util.Optional;

/** Somebody else has the lock, and had it for the whole wait. */
public final class NotAcquiredException extends RlockException {
    private static final long serialVersionUID = 1;

    /** The first of its keys. */
    private final String key;
    /** Null where that is not known. */
    private final String heldBy;

    NotAcquiredException(String key, String heldBy) {
        super(key + ": " + (heldBy == null ? "somebody else has it" : "these very locks have it, as " + heldBy), null);
        this.key = key;
        this.heldBy = heldBy;
    }

    /**
     * The lock.
     *
     * @return its key; of a request for several keys the first
     */
    public String key() {
        return key;
    }

    /**
     * Who holds it, where these locks know: when it is one of their own holds.
     *
     * @return the owner, as {@link Hold#owner} gives it
     */
    public Optional<String> heldBy() {
        return Optional.ofNullable(heldBy);
    }
}

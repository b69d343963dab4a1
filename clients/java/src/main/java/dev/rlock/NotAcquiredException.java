package dev.rlock;

/** Somebody else has the lock, and had it for the whole wait. */
public final class NotAcquiredException extends RlockException {
    private static final long serialVersionUID = 1;

    NotAcquiredException(String key) {
        super(key + ": somebody else has it", null);
    }
}

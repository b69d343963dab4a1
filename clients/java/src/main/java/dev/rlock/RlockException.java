package dev.rlock;

/** What went wrong with a lock: the base of all errors of this package. */
public abstract class RlockException extends RuntimeException {
    private static final long serialVersionUID = 1;

    RlockException(String message, Throwable cause) {
        super(message, cause);
    }
}

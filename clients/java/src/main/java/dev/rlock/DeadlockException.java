package dev.rlock;

/** To wait would have closed a cycle of owners that wait for each other. Release something, and try again. */
public final class DeadlockException extends RlockException {
    private static final long serialVersionUID = 1;

    DeadlockException(String text) {
        super(text, null);
    }
}

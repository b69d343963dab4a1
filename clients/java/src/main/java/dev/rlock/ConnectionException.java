package dev.rlock;

/** There was no connection within the time. */
public final class ConnectionException extends RlockException {
    private static final long serialVersionUID = 1;

    ConnectionException(String message, Throwable cause) {
        super(message, cause);
    }
}

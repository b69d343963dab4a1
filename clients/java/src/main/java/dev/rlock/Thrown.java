package dev.rlock;

import java.util.concurrent.CompletionException;

/** An error, as a future has it. */
final class Thrown {
    private Thrown() {}

    static Throwable cause(Throwable error) {
        return error instanceof CompletionException && error.getCause() != null ? cause(error.getCause()) : error;
    }

    /** One for each who gets it. */
    static Throwable again(Throwable error) {
        if (error instanceof RefusedException refused) {
            return refused.again();
        } else if (error instanceof LostException lost) {
            return new LostException(lost.key(), lost.reason());
        }
        return error instanceof ConnectionException ? new ConnectionException(error.getMessage(), error.getCause()) : error;
    }

    /** To be thrown by this thread, whose stack it has: that of the one which made it leads nowhere in the program. */
    static RuntimeException unwrapped(Throwable error) {
        if (!(cause(error) instanceof RuntimeException known)) {
            return new IllegalStateException(error);
        }
        if (known instanceof RlockException
                || known instanceof IllegalStateException
                || known instanceof IllegalArgumentException) {
            known.fillInStackTrace();
        }
        return known;
    }
}

package dev.rlock;

/** The server refused a command. */
public final class RefusedException extends RlockException {
    private static final long serialVersionUID = 1;

    /** The first word of the text. */
    private final String code;

    RefusedException(String text) {
        super(text, null);
        code = Reply.code(text);
    }

    /** A new one for each who gets it, as with {@link Holding#loss}. */
    RefusedException again() {
        return new RefusedException(getMessage());
    }

    /**
     * The first word of the server's text, such as {@code NOREPLICAS}, {@code OOM},
     * {@code WRONGTYPE}, {@code WRONGMODE}, {@code WRONGLIMIT} or {@code NOPERM}.
     *
     * @return the code
     */
    public String code() {
        return code;
    }
}

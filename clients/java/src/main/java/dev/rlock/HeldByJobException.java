package dev.rlock;

/** The same {@link Job} holds the key or waits for it. To hold it once more, say {@link Hold#again}. */
public final class HeldByJobException extends RlockException {
    private static final long serialVersionUID = 1;

    HeldByJobException(String key) {
        super(key + ": the same job holds it or waits for it; call again() on its hold", null);
    }
}

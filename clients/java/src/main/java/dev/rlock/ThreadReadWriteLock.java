package dev.rlock;

import java.util.concurrent.locks.ReadWriteLock;

/**
 * A lock to read and to write in the form of java.util.concurrent, by thread, as
 * {@link ThreadLock} says. <b>Neither of the two can report that it was lost</b>: ask
 * {@link ThreadLock#isHeldAndNotLost}.
 *
 * <p>Who writes may read too, and reads on when it has unlocked the write lock. Who reads alone may
 * write too; while others read it waits for them, and a second reader who would wait to write gets
 * {@link DeadlockException}, for neither would ever leave.
 */
public final class ThreadReadWriteLock implements ReadWriteLock {
    private final ThreadLock read;
    private final ThreadLock write;

    ThreadReadWriteLock(ThreadLock read, ThreadLock write) {
        this.read = read;
        this.write = write;
    }

    @Override
    public ThreadLock readLock() {
        return read;
    }

    @Override
    public ThreadLock writeLock() {
        return write;
    }
}

package dev.rlock;

import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicReference;

/** Of one use of a sticky lock. Who has it has the lock, in this process. A use that nobody refers to any more is over. */
final class Turn extends WeakReference<Use> {
    final Thread thread = Thread.currentThread();
    /** Why it had not the lock to its end. */
    volatile String lost;
    volatile boolean over;

    Turn(Use use) {
        super(use);
    }

    /** What came of an acquisition, for those who use it. */
    static final class Lease {
        final Holding holding;
        private final Moment until;
        /** For so long, in ns and in ms, a proof of the connection is good. */
        private final long nanos;
        private final long millis;
        /** Uses of it that have ended: it is of who has the turn. */
        int uses;

        /** @param most for which it can be used without a word to anybody, in ms */
        Lease(Holding holding, long most) {
            this.holding = holding;
            until = Moment.now().after(most);
            millis = Heartbeat.counted(Math.min(holding.lease(), 1L << 42), true) / 2;
            nanos = millis * Millis.NANOS;
        }

        boolean isPast(long nanos, long millis) {
            return !until.isAhead(nanos, millis);
        }

        /** Whether the connection was proved a short while ago. */
        boolean isProved(long nanos, long millis) {
            Moment proof = holding.session.proof;
            return nanos - proof.nanos() < this.nanos && millis - proof.millis() < this.millis;
        }
    }

    /** Which turn is on. Each step is one; they are in one order for all threads. */
    static final class On {
        /** The turn, or this while the session decides, or null. */
        private final AtomicReference<Object> has = new AtomicReference<>();
        /** What is here to be used, without a word to anybody; null: the session has to look first. */
        volatile Lease lease;
        /** Uses wait in the session's line. */
        volatile boolean waits;
        /** When the last use ended. */
        volatile long used;

        /** Null: it is not to be had so. */
        Lease begin(Turn turn) {
            if (!has.compareAndSet(null, turn)) {
                return null;
            }
            Lease here = lease;
            if (here != null && !waits) {
                long nanos = System.nanoTime();
                long millis = System.currentTimeMillis();
                if (!here.isPast(nanos, millis) && here.isProved(nanos, millis)) {
                    return here;
                }
            }
            // Who does not come in so waits in the line, and the session looks then: nobody is overlooked.
            giveBack(turn);
            return null;
        }

        /** False if it had it not. */
        boolean giveBack(Turn turn) {
            return has.compareAndSet(turn, null);
        }

        boolean isOf(Turn turn) {
            return has.get() == turn;
        }

        /** Whether this very thread has begun the use that is under way. */
        boolean isMine() {
            return has.get() instanceof Turn turn && turn.thread == Thread.currentThread() && turn.get() != null;
        }

        boolean isUsed() {
            return has.get() instanceof Turn;
        }

        /** For the session, to decide. */
        boolean take() {
            if (has.get() instanceof Turn turn && turn.get() == null) {
                giveBack(turn); // it was forgotten
            }
            return has.compareAndSet(null, this);
        }

        void decided() {
            has.compareAndSet(this, null);
        }

        /** By the session, which has it. */
        void handTo(Turn turn) {
            has.set(turn);
        }
    }
}

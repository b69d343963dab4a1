package interop.kinds;

import interop.kinds.Plain.Trait;
import java.util.List;
import org.redisson.api.RedissonClient;

/** All kinds of locks that Redisson 4.7 has. */
public final class Kinds {
    public static final Kind LOCK = new Plain("RLock", RedissonClient::getLock);
    public static final Kind FAIR = new Plain("RFairLock", RedissonClient::getFairLock);
    public static final Kind MULTI = new Multi("RedissonMultiLock");
    public static final Kind RED_OF_3 = new Red("RedissonRedLock, 3 servers", 3);
    public static final Kind RED_OF_5 = new Red("RedissonRedLock, 5 servers", 5);

    /** Read/write locks by the modes of holder and waiter. */
    public static final Kind READ_THEN_WRITE =
            new Shared("RReadWriteLock, read then write", Mode.READ, Mode.WRITE);
    public static final Kind WRITE_THEN_READ =
            new Shared("RReadWriteLock, write then read", Mode.WRITE, Mode.READ);
    public static final Kind WRITE_THEN_WRITE =
            new Shared("RReadWriteLock, write then write", Mode.WRITE, Mode.WRITE);

    public static final List<Kind> ALL = List.of(
            LOCK,
            FAIR,
            READ_THEN_WRITE,
            WRITE_THEN_READ,
            WRITE_THEN_WRITE,
            new Plain("RFencedLock", RedissonClient::getFencedLock),
            new Plain("RSpinLock", RedissonClient::getSpinLock, Trait.SPINS),
            new Plain("RNonReentrantLock", RedissonClient::getNonReentrantLock, Trait.NESTS_NOT),
            new Plain("RNonReentrantLock, fair", RedissonClient::getNonReentrantFairLock,
                    Trait.NESTS_NOT),
            MULTI,
            RED_OF_3,
            RED_OF_5);

    private Kinds() {
    }
}

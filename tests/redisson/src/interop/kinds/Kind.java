package interop.kinds;

import interop.harness.Application;
import interop.harness.Contender;
import interop.harness.Site;
import java.util.List;

/** A kind of lock that Redisson has, and how it and we take it. */
public abstract class Kind {
    /** In a read/write lock the holder and the waiter may differ in mode. */
    public enum Role { HOLDER, WAITER }

    private final String name;

    Kind(String name) {
        this.name = name;
    }

    public final String name() {
        return name;
    }

    public abstract Contender redisson(Application application, String key, Role role);

    public abstract Contender rlock(Site site, String key, Role role, String owner);

    /** The locks that a holder has when it holds one of this kind. */
    public abstract List<Part> parts(String key, Role role);

    /** Whether a Redisson owner may take it again. */
    public boolean nests() {
        return true;
    }

    /** Whether many may read it; then the modes of its roles may differ. */
    public boolean isShared() {
        return false;
    }

    /**
     * Whether Redisson subscribes while it waits, so that the server can know of it. A
     * spin lock only tries again and again.
     */
    public boolean isHeard() {
        return true;
    }

    /** For how long a client waits in one go, at most, where many contend for it. */
    public long patienceMs() {
        return Long.MAX_VALUE;
    }
}

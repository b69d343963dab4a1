package interop.kinds;

import interop.harness.Application;
import interop.harness.Contender;
import interop.harness.Site;
import java.util.List;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;

/** A read/write lock; its holder and its waiter each have a mode. */
final class Shared extends Kind {
    private final Mode holder;
    private final Mode waiter;

    Shared(String name, Mode holder, Mode waiter) {
        super(name);
        this.holder = holder;
        this.waiter = waiter;
    }

    @Override
    public Contender redisson(Application application, String key, Role role) {
        return new RedissonContender(part(key, role).of(application));
    }

    @Override
    public Contender rlock(Site site, String key, Role role, String owner) {
        return new NativeLock(site, part(key, role), owner);
    }

    @Override
    public List<Part> parts(String key, Role role) {
        return List.of(part(key, role));
    }

    @Override
    public boolean isShared() {
        return true;
    }

    private Part part(String key, Role role) {
        Mode mode = role == Role.HOLDER ? holder : waiter;
        return new Part(0, key, mode, client -> lock(client, key, mode));
    }

    private static RLock lock(RedissonClient client, String key, Mode mode) {
        RReadWriteLock pair = client.getReadWriteLock(key);
        return mode == Mode.READ ? pair.readLock() : pair.writeLock();
    }
}

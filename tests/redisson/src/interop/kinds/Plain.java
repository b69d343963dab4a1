package interop.kinds;

import interop.harness.Application;
import interop.harness.Contender;
import interop.harness.Site;
import java.util.List;
import java.util.Set;
import java.util.function.BiFunction;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** A lock that one owner holds. */
final class Plain extends Kind {
    /** What is unlike other locks. */
    enum Trait { NESTS_NOT, SPINS }

    private final Set<Trait> traits;
    private final BiFunction<RedissonClient, String, RLock> lock;

    Plain(String name, BiFunction<RedissonClient, String, RLock> lock, Trait... traits) {
        super(name);
        this.lock = lock;
        this.traits = Set.of(traits);
    }

    @Override
    public Contender redisson(Application application, String key, Role role) {
        return new RedissonContender(lock.apply(application.client(), key));
    }

    @Override
    public Contender rlock(Site site, String key, Role role, String owner) {
        return new NativeLock(site, parts(key, role).get(0), owner);
    }

    @Override
    public List<Part> parts(String key, Role role) {
        return List.of(new Part(0, key, Mode.EXCLUSIVE, client -> lock.apply(client, key)));
    }

    @Override
    public boolean nests() {
        return !traits.contains(Trait.NESTS_NOT);
    }

    @Override
    public boolean isHeard() {
        return !traits.contains(Trait.SPINS);
    }
}

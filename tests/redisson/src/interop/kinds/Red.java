package interop.kinds;

import interop.harness.Application;
import interop.harness.Contender;
import interop.harness.Site;
import java.util.List;
import java.util.stream.IntStream;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;

/** A lock on several servers that know nothing of each other; the majority counts. */
final class Red extends Kind {
    private final int servers;

    Red(String name, int servers) {
        super(name);
        this.servers = servers;
    }

    @Override
    public Contender redisson(Application application, String key, Role role) {
        RLock[] locks = parts(key, role).stream()
                .map(part -> part.of(application)).toArray(RLock[]::new);
        return new RedissonContender(new RedissonRedLock(locks));
    }

    @Override
    public Contender rlock(Site site, String key, Role role, String owner) {
        return new NativeMajority(parts(key, role).stream()
                .map(part -> new NativeLock(site, part, owner)).toList());
    }

    @Override
    public List<Part> parts(String key, Role role) {
        return IntStream.range(0, servers)
                .mapToObj(server -> new Part(server, key, Mode.EXCLUSIVE,
                        client -> client.getLock(key)))
                .toList();
    }

    /** One that waits for a server holds others meanwhile, and is in everybody's way. */
    @Override
    public long patienceMs() {
        return 3_000;
    }
}

package interop.kinds;

import interop.harness.Application;
import interop.harness.Contender;
import interop.harness.Site;
import java.util.List;
import java.util.stream.Stream;
import org.redisson.api.RLock;

/** Three locks of one server, held together. */
final class Multi extends Kind {
    Multi(String name) {
        super(name);
    }

    @Override
    public Contender redisson(Application application, String key, Role role) {
        RLock[] locks = parts(key, role).stream()
                .map(part -> part.of(application)).toArray(RLock[]::new);
        return new RedissonContender(application.client().getMultiLock(locks));
    }

    @Override
    public Contender rlock(Site site, String key, Role role, String owner) {
        return new NativeMany(site, parts(key, role).stream().map(Part::key).toList(), owner);
    }

    @Override
    public List<Part> parts(String key, Role role) {
        return Stream.of("a", "b", "c").map(end -> "{" + key + "}:" + end)
                .map(name -> new Part(0, name, Mode.EXCLUSIVE, client -> client.getLock(name)))
                .toList();
    }
}

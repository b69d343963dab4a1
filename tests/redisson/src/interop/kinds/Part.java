package interop.kinds;

import interop.harness.Application;
import java.util.function.Function;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** One lock of one server, which a kind is made of; how Redisson sees it. */
public record Part(int server, String key, Mode mode, Function<RedissonClient, RLock> lock) {
    public RLock of(Application application) {
        return lock.apply(application.client(server));
    }
}

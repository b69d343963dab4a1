package interop.cells;

import interop.harness.Actor;
import interop.harness.Application;
import interop.harness.Site;
import interop.kinds.Kind;
import interop.kinds.Kind.Role;
import interop.kinds.Part;
import java.util.List;

/** A holder on one side and a waiter on the other, of one lock that nobody else uses. */
public final class Pair implements AutoCloseable {
    public final Site site;
    public final Kind kind;
    public final Direction direction;
    public final String key;
    public final Application application;
    public final Actor holder;
    public final Actor waiter;

    public Pair(Site site, Kind kind, Direction direction, String key) {
        this.site = site;
        this.kind = kind;
        this.direction = direction;
        this.key = key;
        application = site.firstApplication();
        holder = redissonHolds() ? redisson(Role.HOLDER) : rlock(Role.HOLDER);
        waiter = redissonHolds() ? rlock(Role.WAITER) : redisson(Role.WAITER);
    }

    public boolean redissonHolds() {
        return direction == Direction.REDISSON_HOLDS;
    }

    /** The locks that the holder has. */
    public List<Part> parts() {
        return kind.parts(key, Role.HOLDER);
    }

    public Actor redisson(Role role) {
        return new Actor(thread -> kind.redisson(application, key, role));
    }

    /** In the name of the thread that it runs on, as Redisson would name it. */
    public Actor rlock(Role role) {
        return new Actor(thread ->
                kind.rlock(site, key, role, application.owner(0, thread)));
    }

    @Override
    public void close() {
        holder.close();
        waiter.close();
    }
}

package interop.kinds;

import interop.harness.Contender;
import interop.harness.Info;
import interop.harness.Resp;
import interop.harness.Site;
import java.util.List;
import java.util.stream.Stream;

/** An owner that takes several locks of one server at once, by RLOCK.MACQUIRE. */
final class NativeMany implements Contender {
    private final List<String> keys;
    private final String owner;
    private final Resp client;
    private final Resp control;

    NativeMany(Site site, List<String> keys, String owner) {
        this.keys = keys;
        this.owner = owner;
        client = site.server(0).connect();
        control = site.control();
    }

    @Override
    public boolean tryLock(long leaseMs) {
        return client.call(request(leaseMs)) != null;
    }

    @Override
    public boolean lock(long waitMs, long leaseMs) {
        String[] words = NativeLock.append(request(leaseMs), "BLOCK", Long.toString(waitMs));
        return client.call(words) != null;
    }

    @Override
    public void lock(long leaseMs) {
        lock(0, leaseMs);
    }

    @Override
    public void unlock() {
        client.call(command("RLOCK.MRELEASE", owner));
    }

    @Override
    public boolean waits(Thread thread) {
        return Info.waits(control, keys.get(0), owner);
    }

    @Override
    public void close() {
        client.close();
    }

    private String[] request(long leaseMs) {
        if (leaseMs == WATCHED) {
            return NativeLock.append(request(NativeLock.WATCHED_LEASE_MS), "WATCHDOG");
        }
        return command("RLOCK.MACQUIRE", owner, Long.toString(leaseMs));
    }

    private String[] command(String name, String... rest) {
        Stream<String> head = Stream.of(name, Integer.toString(keys.size()));
        Stream<String> tail = Stream.of(rest);
        return Stream.of(head, keys.stream(), tail).flatMap(words -> words).toArray(String[]::new);
    }
}

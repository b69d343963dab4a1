package interop.kinds;

import interop.harness.Contender;
import interop.harness.Info;
import interop.harness.Resp;
import interop.harness.Site;
import java.util.Arrays;

/** An owner that uses RLOCK.ACQUIRE over a connection of its own. */
final class NativeLock implements Contender {
    /** The lease that the server renews where a watched one is asked for. */
    static final long WATCHED_LEASE_MS = 3_000;

    private final String owner;
    private final Part part;
    private final Resp client;
    private final Resp control;

    NativeLock(Site site, Part part, String owner) {
        this.part = part;
        this.owner = owner;
        client = site.server(part.server()).connect();
        control = site.control(part.server());
    }

    @Override
    public boolean tryLock(long leaseMs) {
        return client.call(request(leaseMs)) != null;
    }

    @Override
    public boolean lock(long waitMs, long leaseMs) {
        return client.call(append(request(leaseMs), "BLOCK", Long.toString(waitMs))) != null;
    }

    @Override
    public void lock(long leaseMs) {
        lock(0, leaseMs);
    }

    @Override
    public void unlock() {
        client.call(part.mode().with("RLOCK.RELEASE", part.key(), owner));
    }

    @Override
    public boolean waits(Thread thread) {
        return Info.waits(control, part.key(), owner);
    }

    @Override
    public void close() {
        client.close();
    }

    private String[] request(long leaseMs) {
        if (leaseMs == WATCHED) {
            return append(request(WATCHED_LEASE_MS), "WATCHDOG");
        }
        return part.mode().with("RLOCK.ACQUIRE", part.key(), owner, Long.toString(leaseMs));
    }

    static String[] append(String[] words, String... more) {
        String[] all = Arrays.copyOf(words, words.length + more.length);
        System.arraycopy(more, 0, all, words.length, more.length);
        return all;
    }
}

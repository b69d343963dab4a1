package interop.cases;

import interop.harness.Application;
import interop.harness.Check;
import interop.harness.Contender;
import interop.harness.Settings;
import interop.harness.Site;
import interop.kinds.Kind;
import interop.kinds.Kind.Role;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/**
 * Clients of both sides contend for one lock, and count up a number that nothing but the
 * lock protects: they read it, pause, and write it back.
 */
final class Contest {
    private static final long LEASE_MS = 15_000;
    private static final long PAUSE_NS = 100_000;
    private static final long REST_NS = 20_000_000;
    /**
     * After the end those who wait still come in, for nobody asks again; a Redisson reader
     * that lost a message comes in only when the lease that it last saw would have ended.
     */
    private static final long GRACE_MS = 3 * LEASE_MS;

    final Side rlock = new Side("rlock");
    final Side redisson = new Side("Redisson");

    private final Site site;
    private final Kind kind;
    private final long lastsNs = Settings.contestMillis() * 1_000_000;
    private final List<Thread> clients = new ArrayList<>();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    private final AtomicInteger writers = new AtomicInteger();
    private final AtomicInteger readers = new AtomicInteger();
    private volatile long number;
    private volatile long begun;

    /** In a kind whose roles differ the holder writes, and the waiter reads. */
    private Contest(Site site, Kind kind) {
        this.site = site;
        this.kind = kind;
    }

    /** Runs it to its end, and checks that no two were in at once. */
    static Contest run(Site site, Kind kind, int natives, int applications, int threadsOfEach) {
        Contest contest = new Contest(site, kind);
        contest.begin(natives, applications, threadsOfEach);
        contest.end();
        return contest;
    }

    private void begin(int natives, int applications, int threadsOfEach) {
        for (int i = 0; i < natives; i++) {
            String owner = "native-" + i;
            add(rlock, kind.rlock(site, "contested", Role.HOLDER, owner),
                    kind.rlock(site, "contested", Role.WAITER, owner));
        }
        for (int i = 0; i < applications; i++) {
            Application application = site.application();
            for (int j = 0; j < threadsOfEach; j++) {
                add(redisson, kind.redisson(application, "contested", Role.HOLDER),
                        kind.redisson(application, "contested", Role.WAITER));
            }
        }
        begun = System.nanoTime();
        clients.forEach(Thread::start);
    }

    private void add(Side side, Contender writer, Contender reader) {
        Thread client = new Thread(() -> {
            try (writer; reader) {
                contend(side, writer, reader);
            } catch (RuntimeException | AssertionError e) {
                failure.compareAndSet(null, e);
            }
        }, side.name());
        client.setDaemon(true);
        clients.add(client);
    }

    private void contend(Side side, Contender writer, Contender reader) {
        long entries = 0;
        while (elapsed() < lastsNs) {
            boolean writes = !kind.isShared() || ThreadLocalRandom.current().nextBoolean();
            Contender lock = writes ? writer : reader;
            long asked = System.nanoTime();
            waitFor(lock);
            long entered = System.nanoTime();
            if (writes) {
                write();
            } else {
                read();
            }
            side.entered((double) (entered - begun) / lastsNs, writes, entered - asked);
            lock.unlock();
            entries++;
            if (side == rlock && !kind.isHeard()) {
                // Native waiters would hand it on for ever, and one who spins finds it free
                // only if nobody waits.
                LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(REST_NS));
            }
        }
        side.left(entries);
    }

    private void waitFor(Contender lock) {
        long end = lastsNs + GRACE_MS * 1_000_000;
        do {
            long rest = Math.max(1, (end - elapsed()) / 1_000_000);
            if (lock.lock(Math.min(rest, kind.patienceMs()), LEASE_MS)) {
                return;
            }
        } while (elapsed() < end);
        throw new AssertionError("not let in, though all others left");
    }

    private void write() {
        Check.equal(1, writers.incrementAndGet(), "writers inside");
        Check.equal(0, readers.get(), "readers inside with a writer");
        long seen = number;
        LockSupport.parkNanos(PAUSE_NS);
        number = seen + 1;
        writers.decrementAndGet();
    }

    private void read() {
        readers.incrementAndGet();
        long seen = number;
        Check.equal(0, writers.get(), "writers inside with a reader");
        LockSupport.parkNanos(PAUSE_NS);
        Check.equal(seen, number, "what a reader reads, twice");
        readers.decrementAndGet();
    }

    private long elapsed() {
        return System.nanoTime() - begun;
    }

    private void end() {
        long end = lastsNs / 1_000_000 + 2 * GRACE_MS;
        for (Thread client : clients) {
            try {
                client.join(Math.max(1, end - elapsed() / 1_000_000));
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            Check.that(!client.isAlive(), "every client comes to its end");
        }
        if (failure.get() != null) {
            throw new AssertionError("a client failed", failure.get());
        }
        Check.equal(rlock.writes() + redisson.writes(), number, "the number, and who counted it up");
    }
}

package interop.cases;

import interop.harness.Actor;
import interop.harness.Application;
import interop.harness.Check;
import interop.harness.Contender;
import interop.harness.Report;
import interop.harness.Site;
import interop.harness.Times;
import interop.kinds.Kind;
import interop.kinds.Kinds;
import java.util.concurrent.Future;
import org.redisson.api.RLock;

/** A holder that is watched dies without a release: the other side comes in. */
public final class HolderDies extends Case {
    private static final long WATCHDOG_MS = 3_000;

    @Override
    public String name() {
        return "holder dies";
    }

    @Override
    public void run(Report report) {
        holds(report, "a native holder's connection closes: Redisson's waiter is woken",
                this::ours);
        holds(report, "a Redisson application dies: rlock's waiter is in within lockWatchdogTimeout (3 s)",
                Site.withWatchdog(WATCHDOG_MS), this::redissons);
    }

    private String ours(Site site) {
        Times times = new Times();
        for (int round = 0; round < 10; round++) {
            Actor holder = new Actor(thread ->
                    Kinds.LOCK.rlock(site, "k", Kind.Role.HOLDER, "holder"));
            try (Actor waiter = new Actor(thread ->
                    Kinds.LOCK.redisson(site.firstApplication(), "k", Kind.Role.WAITER))) {
                Check.that(holder.tryLock(Contender.WATCHED), "the holder takes it");
                Future<Long> entered = waiter.beginLock(LEASE_MS);
                long died = System.nanoTime();
                holder.close();
                // Sooner than the lease, which is 3 s.
                times.add(Actor.await(entered, 2_000) - died);
                waiter.unlock();
            }
        }
        return times.shown();
    }

    private String redissons(Site site) {
        Application dies = site.application();
        RLock lock = dies.client().getLock("k");
        Check.that(lock.tryLock(), "the holder takes it");
        try (Actor waiter = new Actor(thread ->
                Kinds.LOCK.rlock(site, "k", Kind.Role.WAITER, "waiter"))) {
            Future<Long> entered = waiter.beginLock(LEASE_MS);
            long died = System.nanoTime();
            dies.close();
            return Times.shown(Actor.await(entered, WATCHDOG_MS + BOUND_MS) - died);
        }
    }
}

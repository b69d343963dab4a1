package interop.cases;

import interop.harness.Actor;
import interop.harness.Application;
import interop.harness.Check;
import interop.harness.Report;
import interop.harness.Resp;
import interop.harness.Site;
import interop.harness.Times;
import interop.harness.Wait;
import interop.kinds.Kind;
import interop.kinds.Kinds;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/** A Redisson reader that died left its field in the hash: no hold, once its lease is over. */
public final class DeadReader extends Case {
    private static final long DEADS_LEASE_MS = 2_000;

    /** Deadlines are whole ms, so a lease may be that much shorter. */
    private static final long GRAIN_NS = 1_000_000;

    @Override
    public String name() {
        return "dead reader";
    }

    @Override
    public void run(Report report) {
        holds(report, "a reader that died keeps a native writer out until its lease ends",
                this::untilItsLeaseEnds);
        holds(report, "and no longer, though its field stays in the hash beside another reader's",
                this::itsFieldIsNoHold);
    }

    /** When it asked for its lease, and when it had it. */
    private record Asked(long asked, long had) {
    }

    private static Asked readAndDie(Site site) {
        Application application = site.application();
        RLock lock = application.client().getReadWriteLock("doc").readLock();
        try (Actor reader = new Actor()) {
            return reader.ask(nobody -> {
                long asked = System.nanoTime();
                lock.lock(DEADS_LEASE_MS, TimeUnit.MILLISECONDS);
                return new Asked(asked, System.nanoTime());
            });
        } finally {
            application.close();
        }
    }

    private static Actor writer(Site site) {
        return new Actor(thread ->
                Kinds.WRITE_THEN_WRITE.rlock(site, "doc", Kind.Role.WAITER, "writer"));
    }

    private String untilItsLeaseEnds(Site site) {
        Resp control = site.control();
        control.say("RLOCK.ACQUIRE doc ann 60000 READ");
        Asked dead = readAndDie(site);
        try (Actor writer = writer(site)) {
            Future<Long> entered = writer.beginLock(LEASE_MS);
            control.say("RLOCK.RELEASE doc ann READ");
            long leaseOver = Actor.await(entered, DEADS_LEASE_MS + BOUND_MS)
                    - DEADS_LEASE_MS * 1_000_000;
            Check.that(leaseOver - dead.asked() >= -GRAIN_NS, "not before its lease ended");
            return Times.shown(Math.max(0, leaseOver - dead.had())) + " after it";
        }
    }

    private String itsFieldIsNoHold(Site site) {
        Resp control = site.control();
        RLock other = site.firstApplication().client().getReadWriteLock("doc").readLock();
        other.lock(LEASE_MS, TimeUnit.MILLISECONDS);
        readAndDie(site);
        Wait.until("of the lease keys the other one's is left", () ->
                ((List<?>) control.say("KEYS *:rwlock_timeout:*")).size() == 1);
        Check.equal(3L, control.say("HLEN doc"), "fields: the mode, the other, the dead one");
        control.say("RLOCK.ACQUIRE doc ann 60000 READ");
        try (Actor writer = writer(site)) {
            Future<Long> entered = writer.beginLock(LEASE_MS);
            other.unlock();
            Check.that(!entered.isDone(), "ann still reads");
            long released = System.nanoTime();
            control.say("RLOCK.RELEASE doc ann READ");
            return Times.shown(Actor.await(entered, BOUND_MS) - released);
        }
    }
}

package interop.cases;

import interop.harness.Actor;
import interop.harness.Application;
import interop.harness.Check;
import interop.harness.Info;
import interop.harness.Report;
import interop.harness.Resp;
import interop.harness.Site;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;

/** Redisson's name of a thread is an owner like any other: used from both sides it nests. */
public final class OneOwner extends Case {
    @Override
    public String name() {
        return "one owner";
    }

    @Override
    public void run(Report report) {
        holds(report, "one owner that locks on both sides nests", this::nests);
        holds(report, "one owner upgrades and downgrades across the sides", this::changesMode);
    }

    private String nests(Site site) {
        Application application = site.firstApplication();
        Resp control = site.control();
        RLock lock = application.client().getLock("k");
        try (Actor thread = new Actor()) {
            String owner = application.owner(0, thread.threadId());
            thread.run(() -> lock.lock(60, TimeUnit.SECONDS));
            Object token = control.call("RLOCK.ACQUIRE", "k", owner, "60000");
            Check.that(token instanceof Long, "rlock nests in Redisson's hold");
            Check.equal(token, control.call("RLOCK.ACQUIRE", "k", owner, "60000"), "same token");
            thread.run(() -> Check.that(lock.tryLock(), "Redisson nests in rlock's"));
            Check.equal(4L, Info.of(control, "k").holder().holds(), "holds");
            Object again = control.call("RLOCK.ACQUIRE", "k", owner, "60000", "ONCE");
            Check.equal(token, again, "same token with ONCE");
            Check.equal(4L, Info.of(control, "k").holder().holds(), "holds after ONCE");
            thread.run(() -> Check.equal(4, lock.getHoldCount(), "holds by Redisson"));
            thread.run(lock::unlock);
            Check.equal(2L, control.call("RLOCK.RELEASE", "k", owner), "holds left");
            thread.run(lock::unlock);
            Check.equal(0L, control.call("RLOCK.RELEASE", "k", owner), "holds left");
            Check.that(!lock.isLocked(), "free");
            Check.refused("NOTHELD", control, "RLOCK.RELEASE", "k", owner);
        }
        return "ok";
    }

    private String changesMode(Site site) {
        Application application = site.firstApplication();
        Resp control = site.control();
        RReadWriteLock doc = application.client().getReadWriteLock("doc");
        try (Actor thread = new Actor()) {
            String owner = application.owner(0, thread.threadId());
            Check.refused("NOTHELD", control, "RLOCK.RELEASE", "doc", owner, "READ");
            thread.run(() -> doc.readLock().lock(60, TimeUnit.SECONDS));
            // Redisson itself cannot upgrade.
            thread.run(() -> Check.that(!doc.writeLock().tryLock(), "no upgrade by Redisson"));
            Check.that(control.call("RLOCK.ACQUIRE", "doc", owner, "60000", "WRITE") != null,
                    "an upgrade by rlock");
            thread.run(() -> Check.that(doc.writeLock().isHeldByCurrentThread(), "it writes"));
            thread.run(() -> doc.writeLock().unlock());
            Check.equal("read", Info.of(control, "doc").holder().mode(), "mode");
            Check.equal(0L, control.call("RLOCK.RELEASE", "doc", owner, "READ"), "holds left");
            Check.equal(0L, control.say("DBSIZE"), "keys left of a lock that both sides used");
        }
        return "ok";
    }
}

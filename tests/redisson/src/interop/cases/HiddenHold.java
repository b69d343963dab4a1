package interop.cases;

import interop.harness.Actor;
import interop.harness.Check;
import interop.harness.Info;
import interop.harness.Report;
import interop.harness.Resp;
import interop.harness.Site;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;

/**
 * A name is to be used either as a plain lock or as a read/write lock. Redisson's
 * read/write lock looks at the field `mode` alone, so it does not see plain locks, not
 * even Redisson's own; this documents it. What rlock then sees is held by both.
 */
public final class HiddenHold extends Case {
    @Override
    public String name() {
        return "hidden hold";
    }

    @Override
    public void run(Report report) {
        holds(report, "Redisson's read/write lock does not see a plain lock of Redisson's",
                site -> {
                    try (Actor other = new Actor()) {
                        RLock lock = client(site).getLock("k");
                        other.run(() -> lock.lock(60, TimeUnit.SECONDS));
                        // To rlock its field is what a dead reader leaves behind.
                        return unseen(site, "", " WRITE");
                    }
                });
        holds(report, "nor one of rlock's, and rlock then refuses everybody",
                site -> {
                    site.control().say("RLOCK.ACQUIRE k a 60000");
                    return unseen(site, "", " WRITE", " READ");
                });
        holds(report, "a plain lock is refused where Redisson's read/write lock is held",
                this::plainIsRefused);
    }

    private static RedissonClient client(Site site) {
        return site.firstApplication().client();
    }

    /** That Redisson reads all the same, and that rlock then refuses these modes. */
    private static String unseen(Site site, String... refused) {
        RReadWriteLock pair = client(site).getReadWriteLock("k");
        Check.that(pair.readLock().tryLock(), "Redisson reads all the same");
        Resp control = site.control();
        for (String mode : refused) {
            Check.equal(null, control.say("RLOCK.ACQUIRE k z 60000" + mode), "by rlock" + mode);
        }
        Check.equal(1L, control.say("RLOCK.FORCE k"), "freed by force");
        Check.equal("free", Info.of(control, "k").mode(), "mode");
        return "documented";
    }

    private String plainIsRefused(Site site) {
        RReadWriteLock pair = client(site).getReadWriteLock("k");
        Resp control = site.control();
        pair.readLock().lock(60, TimeUnit.SECONDS);
        Check.equal(null, control.say("RLOCK.ACQUIRE k a 60000"), "while Redisson reads");
        pair.readLock().unlock();
        pair.writeLock().lock(60, TimeUnit.SECONDS);
        Check.equal(null, control.say("RLOCK.ACQUIRE k a 60000"), "while Redisson writes");
        Check.equal(null, control.say("RLOCK.MACQUIRE 1 k a 60000"), "while Redisson writes");
        pair.writeLock().unlock();
        Check.that(control.say("RLOCK.ACQUIRE k a 60000") != null, "free");
        return "ok";
    }
}

package interop.cases;

import interop.harness.Actor;
import interop.harness.Application;
import interop.harness.Check;
import interop.harness.Report;
import interop.harness.Resp;
import interop.harness.Site;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;

/** Where Redisson's counter is kept, tokens of both sides are drawn from one sequence. */
public final class Fencing extends Case {
    private static final String COUNTER = "redisson_lock_token:{k}";
    private static final int ACQUISITIONS = 200;

    @Override
    public String name() {
        return "fencing";
    }

    @Override
    public void run(Report report) {
        holds(report, "tokens of both sides rise where Redisson made the counter", site -> {
            RFencedLock lock = site.firstApplication().client().getFencedLock("k");
            Check.equal(1L, lock.lockAndGetToken(60, TimeUnit.SECONDS), "the first token");
            lock.unlock();
            return new Sequence(site).rises();
        });
        holds(report, "and where rlock makes it, by rlock.fencing counter", site -> {
            Resp control = site.control();
            control.say("CONFIG SET rlock.fencing counter");
            Object token = control.say("RLOCK.ACQUIRE k a 60000");
            Check.equal(token.toString(), control.call("GET", COUNTER), "the counter");
            control.say("RLOCK.RELEASE k a");
            return new Sequence(site).rises();
        });
        holds(report, "tokens also rise from hand to hand", this::riseFromHandToHand);
    }

    /** Acquisitions one after the other, by either side at random. */
    private static final class Sequence {
        private final Resp client;
        private final RFencedLock lock;
        private long last;
        private int byRlock;

        Sequence(Site site) {
            client = site.control();
            lock = site.firstApplication().client().getFencedLock("k");
            last = Long.parseLong((String) client.call("GET", COUNTER));
        }

        String rises() {
            for (int i = 0; i < ACQUISITIONS; i++) {
                boolean ours = ThreadLocalRandom.current().nextBoolean();
                long token = ours ? ofRlock() : ofRedisson();
                Check.that(token > last, (ours ? "rlock's " : "Redisson's ") + token + " > " + last);
                Check.equal(Long.toString(token), client.call("GET", COUNTER), "the counter");
                last = token;
                byRlock += ours ? 1 : 0;
            }
            return byRlock + " by rlock, " + (ACQUISITIONS - byRlock) + " by Redisson";
        }

        private long ofRlock() {
            long token = (Long) client.say("RLOCK.ACQUIRE k a 60000");
            client.say("RLOCK.RELEASE k a");
            return token;
        }

        private long ofRedisson() {
            long token = lock.lockAndGetToken(60, TimeUnit.SECONDS);
            lock.unlock();
            return token;
        }
    }

    private String riseFromHandToHand(Site site) {
        Application application = site.firstApplication();
        RFencedLock lock = application.client().getFencedLock("k");
        Resp client = site.server(0).connect();
        try (Actor redisson = new Actor(); Actor rlock = new Actor()) {
            long last = 0;
            for (int round = 0; round < 20; round++) {
                long held = redisson.ask(nobody -> lock.lockAndGetToken(60, TimeUnit.SECONDS));
                Future<Object> granted = rlock.begin(nobody ->
                        client.say("RLOCK.ACQUIRE k a 60000 BLOCK 0"));
                redisson.run(lock::unlock);
                long handed = (Long) Actor.await(granted, BOUND_MS);
                Check.that(last < held && held < handed, last + " < " + held + " < " + handed);
                Future<Long> taken = redisson.begin(nobody ->
                        lock.lockAndGetToken(60, TimeUnit.SECONDS));
                rlock.run(() -> client.say("RLOCK.RELEASE k a"));
                last = Actor.await(taken, BOUND_MS);
                Check.that(handed < last, handed + " < " + last);
                redisson.run(lock::unlock);
            }
        }
        client.close();
        return "ok";
    }
}

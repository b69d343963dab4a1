package interop.cases;

import interop.cells.Direction;
import interop.cells.Pair;
import interop.harness.Actor;
import interop.harness.Check;
import interop.harness.Report;
import interop.harness.Resp;
import interop.harness.Site;
import interop.kinds.Kind;
import interop.kinds.Kinds;
import interop.kinds.Part;
import java.util.List;

/** Some of the locks that make up a larger one are held, or it is held with others. */
public final class HeldInPart extends Case {
    @Override
    public String name() {
        return "held in part";
    }

    @Override
    public void run(Report report) {
        holds(report, "readers of both sides read together", this::readersJoin);
        holds(report, "one lock held by Redisson refuses MACQUIRE, which takes nothing",
                this::manyAreRefused);
        holds(report, "one lock held by rlock refuses a multi-lock, which keeps nothing",
                this::aMultiLockIsRefused);
        holds(report, "a red lock is refused by a native majority, not by a minority",
                this::theMajorityCounts);
    }

    private String readersJoin(Site site) {
        Kind readers = Kinds.READ_THEN_WRITE;
        for (Direction direction : Direction.values()) {
            try (Pair pair = new Pair(site, readers, direction, Site.name("joined"));
                    Actor joins = direction == Direction.REDISSON_HOLDS
                            ? pair.rlock(Kind.Role.HOLDER) : pair.redisson(Kind.Role.HOLDER)) {
                Check.that(pair.holder.tryLock(LEASE_MS), "the first reads");
                Check.that(joins.tryLock(LEASE_MS), "the second reads too");
                pair.holder.unlock();
                Check.that(!pair.waiter.tryLock(LEASE_MS), "one reader left refuses a writer");
                joins.unlock();
                Check.that(pair.waiter.tryLock(LEASE_MS), "none left");
            }
        }
        return "ok";
    }

    private String manyAreRefused(Site site) {
        try (Pair pair = new Pair(site, Kinds.MULTI, Direction.REDISSON_HOLDS, "many")) {
            for (Part part : pair.parts()) {
                Check.that(part.of(pair.application).tryLock(), "Redisson holds one");
                Check.that(!pair.waiter.tryLock(LEASE_MS), "refused");
                Check.equal(1L, exist(site, pair.parts()), "locks held");
                part.of(pair.application).unlock();
            }
            Check.that(pair.waiter.tryLock(LEASE_MS), "none is held any more");
            Check.equal(3L, exist(site, pair.parts()), "locks held");
        }
        return "ok";
    }

    private String aMultiLockIsRefused(Site site) {
        try (Pair pair = new Pair(site, Kinds.MULTI, Direction.RLOCK_HOLDS, "many")) {
            Resp client = site.control();
            for (Part part : pair.parts()) {
                client.call("RLOCK.ACQUIRE", part.key(), "a", "60000");
                Check.that(!pair.waiter.tryLock(LEASE_MS), "refused");
                Check.equal(1L, exist(site, pair.parts()), "locks held");
                client.call("RLOCK.RELEASE", part.key(), "a");
            }
            Check.that(pair.waiter.tryLock(LEASE_MS), "none is held any more");
        }
        return "ok";
    }

    private static long exist(Site site, List<Part> parts) {
        return parts.stream()
                .mapToLong(part -> (Long) site.control().call("EXISTS", part.key())).sum();
    }

    private String theMajorityCounts(Site site) {
        for (Kind kind : List.of(Kinds.RED_OF_3, Kinds.RED_OF_5)) {
            try (Pair pair = new Pair(site, kind, Direction.RLOCK_HOLDS, Site.name("red"))) {
                List<Part> parts = pair.parts();
                int majority = parts.size() / 2 + 1;
                for (Part part : parts.subList(0, majority)) {
                    site.control(part.server()).call("RLOCK.ACQUIRE", part.key(), "a", "60000");
                }
                Check.that(!pair.waiter.tryLock(LEASE_MS), "refused by the majority");
                Part one = parts.get(0);
                site.control(one.server()).call("RLOCK.RELEASE", one.key(), "a");
                Check.that(pair.waiter.tryLock(LEASE_MS), "taken in spite of a minority");
                pair.waiter.unlock();
            }
        }
        return "ok";
    }
}

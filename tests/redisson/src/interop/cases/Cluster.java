package interop.cases;

import interop.cells.Direction;
import interop.cells.Matrix;
import interop.cells.Pair;
import interop.cells.Woken;
import interop.harness.Check;
import interop.harness.Report;
import interop.harness.Site;
import interop.kinds.Kinds;
import java.util.List;

/** In a cluster Redisson waits on sharded channels. */
public final class Cluster extends Case {
    @Override
    public String name() {
        return "cluster";
    }

    @Override
    public void run(Report report) {
        Matrix.fill(report, "in a cluster, where Redisson waits on sharded channels",
                List.of(Kinds.LOCK, Kinds.FAIR, Kinds.READ_THEN_WRITE, Kinds.WRITE_THEN_READ,
                        Kinds.MULTI), new Woken(true));
        holds(report, "in a cluster Redisson's channels are sharded", Site.cluster(), site -> {
            try (Pair pair = new Pair(site, Kinds.LOCK, Direction.RLOCK_HOLDS, "k")) {
                pair.holder.tryLock(LEASE_MS);
                pair.waiter.beginLock(LEASE_MS);
                List<?> sharded = (List<?>) site.control().say("PUBSUB SHARDCHANNELS");
                Check.equal(List.of("redisson_lock__channel:{k}"), sharded, "sharded channels");
                return "ok";
            }
        });
    }
}

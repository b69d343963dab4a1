package interop.cases;

import interop.harness.Actor;
import interop.harness.Application;
import interop.harness.Check;
import interop.harness.Info;
import interop.harness.Report;
import interop.harness.Resp;
import interop.harness.Site;
import interop.harness.Times;
import interop.kinds.Kind;
import interop.kinds.Kinds;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.redisson.api.RReadWriteLock;

/** Where readers may enter, all of them are woken, also several of one application. */
public final class WriterLeaves extends Case {
    private static final Kind READ = Kinds.READ_THEN_WRITE;
    private static final int APPLICATIONS = 3;
    private static final int READERS_OF_EACH = 3;

    @Override
    public String name() {
        return "writer leaves";
    }

    @Override
    public void run(Report report) {
        holds(report, "a native writer that leaves wakes all waiting Redisson readers",
                site -> wakesAll(site, false));
        holds(report, "so does a native writer that reads on",
                site -> wakesAll(site, true));
        holds(report, "a Redisson writer that reads on lets in native readers, though it tells nobody",
                this::redissonReadsOn);
    }

    private String wakesAll(Site site, boolean readsOn) {
        Resp writer = site.control();
        writer.say("RLOCK.ACQUIRE doc w 60000 WRITE");
        if (readsOn) {
            writer.say("RLOCK.ACQUIRE doc w 60000 READ");
        }
        List<Actor> readers = new ArrayList<>();
        List<Future<Long>> entered = new ArrayList<>();
        for (int i = 0; i < APPLICATIONS; i++) {
            Application application = site.application();
            for (int j = 0; j < READERS_OF_EACH; j++) {
                Actor reader = new Actor(thread ->
                        READ.redisson(application, "doc", Kind.Role.HOLDER));
                readers.add(reader);
                entered.add(reader.beginLock(LEASE_MS));
            }
        }
        long released = System.nanoTime();
        writer.say("RLOCK.RELEASE doc w WRITE");
        Times times = new Times();
        for (Future<Long> reader : entered) {
            times.add(Actor.await(reader, BOUND_MS) - released);
        }
        // None has left: they read together, and with the writer that reads on.
        long holders = readers.size() + (readsOn ? 1 : 0);
        Check.equal(holders + 1, writer.say("HLEN doc"), "fields: the holders, and the mode");
        readers.forEach(Actor::close);
        return times.shown();
    }

    private String redissonReadsOn(Site site) {
        RReadWriteLock doc = site.firstApplication().client().getReadWriteLock("doc");
        Times times = new Times();
        try (Actor owner = new Actor()) {
            for (int round = 0; round < 10; round++) {
                owner.run(() -> {
                    doc.writeLock().lock(LEASE_MS, TimeUnit.MILLISECONDS);
                    doc.readLock().lock(LEASE_MS, TimeUnit.MILLISECONDS);
                });
                List<Actor> readers = Stream.of("ann", "bob", "cat").map(name -> new Actor(thread ->
                        READ.rlock(site, "doc", Kind.Role.HOLDER, name))).toList();
                List<Future<Long>> entered = readers.stream()
                        .map(reader -> reader.beginLock(LEASE_MS)).toList();
                long released = System.nanoTime();
                owner.run(() -> doc.writeLock().unlock());
                for (Future<Long> reader : entered) {
                    times.add(Actor.await(reader, BOUND_MS) - released);
                }
                Check.equal(4, Info.of(site.control(), "doc").holders().size(), "readers");
                owner.run(() -> doc.readLock().unlock());
                readers.forEach(Actor::unlock);
                readers.forEach(Actor::close);
            }
        }
        return times.shown();
    }
}

import dev.rlock.Hold;
import dev.rlock.Job;
import dev.rlock.Locks;
import dev.rlock.Request;
import dev.rlock.Sticky;
import dev.rlock.ThreadLock;
import dev.rlock.ThreadReadWriteLock;
import dev.rlock.Use;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** The forms, as the README shows them. */
public class Forms {
    static void step() {}

    static void save(long token) {}

    public static void run(Locks locks) throws Exception {
        {
            locks.tryAcquire("jobs").ifPresent(hold -> {
                try (hold) {
                    step();
                }
            });
        }
        {
            try (Hold hold = locks.acquire("jobs", Duration.ofSeconds(10))) {
                hold.lost().thenAccept(lost -> System.err.println(lost.reason()));
                while (!hold.isLost()) {
                    step();
                    save(hold.token());
                    break;
                }
            }
        }
        {
            try (Hold hold = locks.acquire("jobs", Duration.ofSeconds(10))) {
                for (int item = 0; item < 1_000 && !hold.isLost(); item++) {
                    step();
                    if (hold.isWanted()) {
                        save(hold.token()); // the rest is for another time
                        break;
                    }
                }
            }
        }
        {
            try (Hold hold = locks.acquire("jobs", Duration.ofSeconds(10))) {
                for (int item = 0; item < 1_000; item++) {
                    step();
                    save(hold.token()); // which is another one once it has given way
                    hold.giveWay();     // at once, unless somebody waits
                }
            }
        }
        {
            CompletableFuture<Hold> future = locks.acquireAsync(Request.of("jobs").waitingForEver());
            future.thenCompose(hold -> {
                step();
                return hold.releaseAsync();
            });
            future.cancel(true); // the wait is over in the server too
        }
        {
            Job job = locks.job();
            Request request = Request.of("account:1").job(job).waiting(Duration.ofSeconds(10));
            try (Hold from = locks.acquire(request);
                    Hold to = locks.acquire(Request.of("account:2").job(job).waitingForEver());
                    Hold again = from.again()) {
                step();
            }
        }
        {
            Request both = Request.of("account:1", "account:2").waiting(Duration.ofSeconds(10));
            Request read = Request.of("report").read();
            Request write = Request.of("report").write().waitingForEver();
            Request twoOfFour = Request.of("gpu").limit(4).permits(2);
            for (Request request : new Request[] {both, read, write, twoOfFour}) {
                locks.acquire(request).release();
            }
        }
        {
            Request careful = Request.of("jobs")
                    .waiting(Duration.ofSeconds(10))
                    .lease(Duration.ofSeconds(30))  // how long it stays held when this machine is gone
                    .max(Duration.ofHours(1));      // a hold ends after so long, whatever hangs
            locks.acquire(careful).release();
        }
        {
            Request plain = Request.of("jobs").watchdog(false).lease(Duration.ofMinutes(1));
            try (Hold hold = locks.acquire(plain)) {
                step();
                hold.renew(Duration.ofMinutes(1));
            }
        }
        {
            Sticky ledger = locks.sticky("ledger"); // once for each process
            for (int item = 0; item < 1_000; item++) {
                try (Use use = ledger.use()) {
                    save(use.token()); // if the storage looks at tokens; it is a round trip
                }
            }
            ledger.close();
        }
        {
            ThreadLock lock = locks.lock("jobs");
            if (lock.tryLock(10, TimeUnit.SECONDS)) {
                try {
                    step();
                    if (lock.isHeldAndNotLost()) {
                        step();
                    }
                } finally {
                    lock.unlock();
                }
            }
        }
        {
            ThreadReadWriteLock document = locks.readWriteLock("doc");
            document.readLock().lock();
            try {
                step();
            } finally {
                document.readLock().unlock();
            }
        }
    }
}

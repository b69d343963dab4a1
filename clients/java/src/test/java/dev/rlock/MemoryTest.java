package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** 10,000 holds and 10,000 waits on one connection, and what they take; printed. */
class MemoryTest extends WithServer {
    private static final int MANY = 10_000;

    private static long used() throws InterruptedException {
        var runtime = Runtime.getRuntime();
        long used = Long.MAX_VALUE;
        for (int i = 0; i < 5; i++) {
            System.gc();
            Thread.sleep(20);
            used = Math.min(used, runtime.totalMemory() - runtime.freeMemory());
        }
        return used;
    }

    private static long resident() throws IOException {
        try (var lines = Files.lines(Path.of("/proc/self/status"))) {
            return Long.parseLong(lines.filter(line -> line.startsWith("VmRSS"))
                    .findFirst().orElse("0").replaceAll("\\D", ""));
        }
    }

    private List<CompletableFuture<Hold>> ask() {
        var all = new ArrayList<CompletableFuture<Hold>>(MANY);
        for (int i = 0; i < MANY; i++) {
            all.add(locks.acquireAsync(Request.of(key + i).waitingForEver()));
        }
        return all;
    }

    private static void all(List<? extends CompletableFuture<?>> futures) throws Exception {
        CompletableFuture.allOf(futures.toArray(CompletableFuture[]::new)).get(50, TimeUnit.SECONDS);
    }

    /** A loop may ask each time whether it is lost. */
    @Test
    void askingForTheLossTakesNoRoom() throws Exception {
        try (Hold hold = locks.acquire(key, LONG)) {
            assertSame(hold.lost(), hold.lost());
        }
    }

    @Test
    void tenThousandOfEach() throws Exception {
        locks.acquire("first", LONG).release();
        long connections = connections();
        long before = used();
        long began = System.nanoTime();
        var holds = ask();
        all(holds);
        long held = System.nanoTime();
        long withHolds = used();
        long then = System.nanoTime();
        var waits = ask();
        server.awaitWaiters(key + (MANY - 1), 1);
        long waiting = System.nanoTime();
        long withWaits = used();
        System.out.printf(
                "a hold %d bytes, a wait %d bytes; %,d of each: heap %,d KiB, process %,d KiB%n",
                (withHolds - before) / MANY, (withWaits - withHolds) / MANY, MANY, withWaits / 1024, resident());
        System.out.printf(
                "%,d holds taken in %d ms, %,d waits begun in %d ms%n",
                MANY, (held - began) / 1_000_000, MANY, (waiting - then) / 1_000_000);
        assertTrue(connections() <= connections, "more connections");
        for (var hold : holds) {
            hold.join().releaseAsync();
        }
        all(waits);
        assertFalse(waits.stream().anyMatch(wait -> wait.join().isLost()));
        all(waits.stream().map(wait -> wait.join().releaseAsync()).toList());
        assertTrue(server.isFree(key + 0) && server.isFree(key + (MANY - 1)));
    }

    private long connections() {
        String text = server.say("INFO clients").toString();
        return Long.parseLong(text.replaceAll("(?s).*connected_clients:(\\d+).*", "$1"));
    }
}

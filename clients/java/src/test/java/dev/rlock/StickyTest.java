package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** A lock that stays with the process between its uses. */
class StickyTest extends WithOthers {
    static final Duration SECOND = Duration.ofSeconds(1);

    interface Body {
        void run() throws Exception;
    }

    static CompletableFuture<Void> inThread(Body body) {
        var done = new CompletableFuture<Void>();
        var thread = new Thread(() -> {
            try {
                body.run();
                done.complete(null);
            } catch (Throwable error) {
                done.completeExceptionally(error);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return done;
    }

    static void ends(List<CompletableFuture<Void>> all) throws Exception {
        CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)).get(60, TimeUnit.SECONDS);
    }

    static String owner(Sticky sticky) throws Exception {
        try (Use use = sticky.use()) {
            return use.owner();
        }
    }

    static long token(Sticky sticky) throws Exception {
        try (Use use = sticky.use()) {
            return use.token();
        }
    }

    @Test
    void badArguments() {
        for (Duration idle : List.of(Duration.ZERO, Duration.ofMillis(1001), Duration.ofSeconds(-1))) {
            assertThrows(IllegalArgumentException.class, () -> locks.sticky(key, idle, LONG, LONG));
        }
        assertThrows(IllegalArgumentException.class, () -> locks.sticky(key, SECOND, Duration.ofSeconds(-1), LONG));
        assertThrows(IllegalArgumentException.class, () -> locks.sticky(key, SECOND, LONG, Duration.ZERO));
        assertThrows(IllegalArgumentException.class, () -> locks.sticky(""));
        assertThrows(NullPointerException.class, () -> locks.sticky(null));
        assertEquals(key, locks.sticky(key, SECOND, Duration.ofDays(1_000_000), Duration.ofDays(100_000)).key());
        assertEquals(0, proxy.said("\nRLOCK.ACQUIRE\n"));
    }

    @Test
    void aUseNeedsNoWordToTheServer() throws Exception {
        Sticky sticky = locks.sticky(key);
        for (int uses = 0; uses < 2000; uses++) {
            sticky.use().close();
        }
        // One asks for the module; and once a second it goes back.
        assertTrue(proxy.said("\nRLOCK.ACQUIRE\n") < 20, proxy.asked());
        Server.await("it goes back", () -> server.isFree(key));
    }

    @Test
    void withoutAWait() throws Exception {
        Sticky sticky = locks.sticky(key, SECOND, Duration.ZERO, LONG);
        sticky.use().close();
        sticky.close();
        Hold hold = others.locks().acquire(key, LONG);
        Sticky again = locks.sticky(key, SECOND, Duration.ZERO, LONG);
        var refused = assertThrows(NotAcquiredException.class, again::use);
        assertTrue(refused.heldBy().isEmpty());
        server.awaitWaiters(key, 0);
        hold.release();
        again.use().close();
    }

    /** However busy it is, and though nobody can say that he waits. */
    @Test
    void whoPollsHasAChance() throws Exception {
        for (int threads : new int[] {1, 3}) {
            Sticky sticky = locks.sticky(key);
            var stop = new AtomicBoolean();
            sticky.use().close();
            var busy = new ArrayList<CompletableFuture<Void>>();
            for (int n = 0; n < threads; n++) {
                busy.add(inThread(() -> {
                    while (!stop.get()) {
                        sticky.use().close();
                    }
                }));
            }
            for (int n = 0; n < 3; n++) {
                var polls = Request.of(key);
                Server.await("who polls has it", () -> {
                    try {
                        var hold = others.locks().tryAcquire(polls);
                        hold.ifPresent(Hold::release);
                        return hold.isPresent();
                    } catch (InterruptedException error) {
                        throw new IllegalStateException(error);
                    }
                });
            }
            stop.set(true);
            ends(busy);
            sticky.close();
        }
    }

    @Test
    void manyThreadsCountExactly() throws Exception {
        var number = new int[1];
        var all = new ArrayList<CompletableFuture<Void>>();
        Sticky ours = locks.sticky(key);
        Sticky theirs = others.locks().sticky(key);
        for (int n = 0; n < 9; n++) {
            Sticky sticky = n < 6 ? ours : theirs;
            all.add(inThread(() -> {
                for (int i = 0; i < 300; i++) {
                    try (Use use = sticky.use()) {
                        int was = number[0];
                        Thread.yield();
                        number[0] = was + 1;
                    }
                }
            }));
        }
        ends(all);
        assertEquals(9 * 300, number[0]);
    }

    @Test
    void tokensRiseOverAllWhoHaveIt() throws Exception {
        var tokens = Collections.synchronizedList(new ArrayList<Long>());
        var stop = new AtomicBoolean();
        Sticky sticky = locks.sticky(key);
        var busy = new ArrayList<CompletableFuture<Void>>();
        for (int n = 0; n < 3; n++) {
            busy.add(inThread(() -> {
                while (!stop.get()) {
                    try (Use use = sticky.use()) {
                        tokens.add(use.token());
                        assertEquals(tokens.get(tokens.size() - 1), use.token());
                    }
                }
            }));
        }
        for (int n = 0; n < 30; n++) {
            try (Hold hold = others.locks().acquire(Request.of(key).waitingForEver())) {
                tokens.add(hold.token());
            }
        }
        Server.await("uses too", () -> tokens.size() > 60);
        stop.set(true);
        ends(busy);
        assertEquals(tokens.stream().sorted().distinct().toList(), tokens);
    }

    @Test
    void aTokenThatGetsNoReply() throws Exception {
        var client = Server.client(proxy.port);
        try (Locks locks = Locks.over(client, Duration.ofSeconds(5))) {
            Sticky sticky = locks.sticky(key, SECOND, LONG, Duration.ofMinutes(1));
            long first = token(sticky);
            String before;
            try (Use use = sticky.use()) {
                proxy.hold(true);
                assertThrows(ConnectionException.class, use::token);
                assertFalse(use.isLost());
                proxy.hold(false);
                before = use.owner();
            }
            try (Use use = sticky.use()) {
                assertNotEquals(before, use.owner());
                assertTrue(use.token() > first);
            }
        } finally {
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    @Test
    void whereNobodyCanSayThatHeWaitsEachUseAcquiresIt() throws Exception {
        proxy.unknown("WANTED", "UNSAID");
        Sticky sticky = locks.sticky(key);
        assertNotEquals(owner(sticky), owner(sticky));
        long last = token(sticky);
        assertTrue(token(sticky) > last);
        Server.await("it goes back", () -> server.isFree(key));
    }

    @Test
    void oneThatWasLostWhileNobodyUsedItIsAcquiredAnew() throws Exception {
        Sticky sticky = locks.sticky(key);
        String before = owner(sticky);
        server.say("RLOCK.FORCE " + key);
        isRead(locks);
        assertNotEquals(before, owner(sticky));
    }

    @Test
    void usesNeverOverlapThoughTheLockIsLost() throws Exception {
        Sticky sticky = locks.sticky(key);
        Use use = sticky.use();
        var lost = use.lost().toCompletableFuture();
        var second = inThread(() -> sticky.use().close());
        Server.await("it waits", () -> sticky.waiting() == 1);
        server.say("RLOCK.FORCE " + key);
        assertEquals("forced", lost.get(20, TimeUnit.SECONDS).reason());
        assertTrue(use.isLost());
        assertFalse(second.isDone());
        assertThrows(LostException.class, use::token);
        assertEquals("forced", assertThrows(LostException.class, use::close).reason());
        use.close();
        assertTrue(use.isLost());
        second.get(20, TimeUnit.SECONDS);
    }
}

package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** However a use of a sticky lock ends, its turn is given back, and nothing stays on the server. */
class StickyEndsTest extends WithServer {
    private static Throwable error(CompletableFuture<Void> thread) {
        return assertThrows(ExecutionException.class, () -> thread.get(20, TimeUnit.SECONDS)).getCause();
    }

    @Test
    void byAnErrorOfTheBody() throws Exception {
        Sticky sticky = locks.sticky(key);
        for (int n = 0; n < 3; n++) {
            assertThrows(ArithmeticException.class, () -> {
                try (Use use = sticky.use()) {
                    throw new ArithmeticException("the body's own");
                }
            });
        }
        sticky.use().close();
        sticky.close();
        assertTrue(server.isFree(key));
    }

    @Test
    void byAnInterruptWhileItWaitsForTheLock() throws Exception {
        Sticky sticky = locks.sticky(key);
        interruptedWhileItWaits(() -> sticky.use().close());
        give(key);
        sticky.use().close();
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, sticky::use);
        sticky.use().close();
        // In its body: that is the body's.
        try (Use use = sticky.use()) {
            Thread.currentThread().interrupt();
            assertTrue(use.token() > 0);
        }
        assertTrue(Thread.interrupted());
        sticky.close();
        assertTrue(server.isFree(key));
    }

    @Test
    void byAnInterruptWhileItWaitsForAnotherUse() throws Exception {
        Sticky sticky = locks.sticky(key);
        for (int n = 0; n < 20; n++) {
            Use use = sticky.use();
            var thread = new Thread[1];
            var waits = StickyTest.inThread(() -> {
                thread[0] = Thread.currentThread();
                sticky.use().close();
            });
            Server.await("it waits", () -> sticky.waiting() == 1);
            if (n % 2 == 0) {
                thread[0].interrupt();
                use.close();
                try {
                    waits.get(20, TimeUnit.SECONDS); // it was given it before
                } catch (ExecutionException error) {
                    assertInstanceOf(InterruptedException.class, error.getCause());
                }
            } else {
                thread[0].interrupt();
                assertInstanceOf(InterruptedException.class, error(waits));
                use.close();
            }
            sticky.use().close();
        }
        sticky.close();
        assertTrue(server.isFree(key));
    }

    /** Some take it all the time, while others wait for it, poll it, force it and give up. */
    @Test
    void howeverOftenItIsLost() throws Exception {
        Sticky sticky = locks.sticky(key, Duration.ofMillis(5), LONG, LONG);
        var inUse = new AtomicBoolean();
        var stop = new AtomicBoolean();
        var users = new ArrayList<CompletableFuture<Void>>();
        for (int n = 0; n < 4; n++) {
            boolean reads = n == 0;
            users.add(StickyTest.inThread(() -> {
                int done = 0;
                while (done == 0 || !stop.get()) {
                    try (Use use = sticky.use()) {
                        assertTrue(inUse.compareAndSet(false, true));
                        try {
                            if (reads) {
                                use.token();
                            }
                        } finally {
                            inUse.set(false);
                        }
                        done++;
                    } catch (LostException lost) {
                        assertEquals("forced", lost.reason());
                    }
                }
            }));
        }
        try (Locks others = Locks.over(client)) {
            for (int n = 0; n < 200; n++) {
                server.say("RLOCK.FORCE " + key);
                Thread.sleep(n % 7);
                others.tryAcquire(Request.of(key).waiting(Duration.ofMillis(n % 5))).ifPresent(hold -> {
                    try {
                        hold.release();
                    } catch (LostException forced) {
                        // As it may be.
                    }
                });
            }
        }
        stop.set(true);
        StickyTest.ends(users);
        sticky.close();
        assertTrue(server.isFree(key));
    }

    @Test
    void byNobodyWhoRefersToIt() throws Exception {
        Sticky sticky = locks.sticky(key);
        StickyTest.inThread(() -> {
            Use use = sticky.use();
            assertTrue(use.token() > 0);
            assertFalse(use.lost().toCompletableFuture().isDone());
        }).get(20, TimeUnit.SECONDS);
        var waits = StickyTest.inThread(() -> sticky.use().close());
        Server.await("the forgotten use is found", () -> {
            System.gc();
            return waits.isDone();
        });
        waits.get();
        sticky.close();
        assertTrue(server.isFree(key));
    }

    @Test
    void aUseWithinAUse() throws Exception {
        Sticky sticky = locks.sticky(key);
        Sticky other = locks.sticky(key + ":other");
        CompletableFuture<Void> waits;
        try (Use use = sticky.use()) {
            assertTrue(assertThrows(IllegalStateException.class, sticky::use).getMessage().contains(key));
            other.use().close();
            assertFalse(use.isLost());
            waits = StickyTest.inThread(() -> sticky.use().close()); // in another thread it waits
            Server.await("it waits", () -> sticky.waiting() == 1);
        }
        waits.get(20, TimeUnit.SECONDS);
    }

    @Test
    void itMayEndInAnotherThread() throws Exception {
        Sticky sticky = locks.sticky(key);
        Use use = sticky.use();
        StickyTest.inThread(use::close).get(20, TimeUnit.SECONDS);
        use.close();
        assertThrows(LostException.class, use::token);
        assertFalse(use.isLost());
        sticky.use().close();
    }

    @Test
    void aLossAfterItsEndIsNotItsOwn() throws Exception {
        Sticky sticky = locks.sticky(key);
        CompletableFuture<LostException> lost;
        try (Use use = sticky.use()) {
            lost = use.lost().toCompletableFuture();
        }
        try (Use use = sticky.use()) {
            server.say("RLOCK.FORCE " + key);
            use.lost().toCompletableFuture().get(20, TimeUnit.SECONDS);
        } catch (LostException its) {
            assertEquals("forced", its.reason());
        }
        sticky.use().close();
        assertFalse(lost.isDone());
    }

    @Test
    void closeWithinAUseDoesNotWaitForIt() throws Exception {
        Sticky sticky = locks.sticky(key);
        try (Use use = sticky.use()) {
            sticky.close();
            assertFalse(use.isLost());
        }
        Server.await("it goes back", () -> server.isFree(key));
        assertThrows(ConnectionException.class, sticky::use);
        sticky.close();
        locks.acquire(key, LONG).release();
    }

    @Test
    void theLocksAreClosed() throws Exception {
        Sticky sticky = locks.sticky(key);
        Use use = sticky.use();
        var waits = StickyTest.inThread(() -> sticky.use().close());
        Server.await("it waits", () -> sticky.waiting() == 1);
        locks.close();
        assertTrue(server.isFree(key));
        assertInstanceOf(ConnectionException.class, error(waits));
        assertEquals("closed", assertThrows(LostException.class, use::close).reason());
        assertThrows(ConnectionException.class, sticky::use);
        sticky.close();
    }

    /** Deep in a recursion an error comes at any line. */
    @Test
    void byAStackThatIsFull() throws Exception {
        Sticky sticky = locks.sticky(key);
        sticky.use().close();
        StickyTest.inThread(() -> {
            for (int n = 0; n < 30; n++) {
                assertThrows(StackOverflowError.class, () -> deeper(sticky));
            }
        }).get(60, TimeUnit.SECONDS);
        var after = StickyTest.inThread(() -> sticky.use().close());
        Server.await("it can be used", () -> {
            System.gc();
            return after.isDone();
        });
        after.get();
        sticky.close();
        assertTrue(server.isFree(key));
    }

    private static void deeper(Sticky sticky) throws InterruptedException {
        deeper(sticky);
        sticky.use().close();
    }
}

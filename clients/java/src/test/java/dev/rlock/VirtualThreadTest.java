package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The program's virtual threads have all the carriers, and none of them moves. The session does. */
class VirtualThreadTest extends WithServer {
    @BeforeEach
    void areThere() {
        assumeTrue(Runtime.version().feature() >= 21, "there are no virtual threads");
    }

    private static final int CARRIERS = 4;

    /** A process whose carriers stand while they read what we do not say. */
    private void goesOn(String what) throws Exception {
        var process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Djdk.virtualThreadScheduler.parallelism=" + CARRIERS,
                        "-Djdk.virtualThreadScheduler.maxPoolSize=" + CARRIERS,
                        "-cp", System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                        VirtualThreadTest.class.getName(), "" + server.port, what)
                .redirectErrorStream(true)
                .start();
        var talk = new Thread(() -> talk(process));
        talk.setDaemon(true);
        talk.start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), said);
        assertTrue(said.contains("goes on"), said);
        server.awaitNothingLeft();
    }

    /** Lets them go on for a moment, now and then. */
    private static void talk(Process process) {
        try (var out = process.getOutputStream()) {
            while (process.isAlive()) {
                Thread.sleep(2_000);
                out.write(new byte[CARRIERS]);
                out.flush();
            }
        } catch (IOException | InterruptedException error) {
            // It has ended.
        }
    }

    @Test
    void whatAFutureCompletesNeedsNoCarrier() throws Exception {
        goesOn("future");
    }

    @Test
    void aVirtualThreadInACallKeepsNobody() throws Exception {
        goesOn("calls");
    }

    private static void begin(Act act) throws Exception {
        Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) () -> {
            try {
                act.run();
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
    }

    /** Has all the carriers, but for a moment after each input. */
    private static void stand(long moment) throws Exception {
        for (int i = 0; i < CARRIERS; i++) {
            begin(() -> {
                var in = new FileInputStream(FileDescriptor.in);
                while (in.read() >= 0) {
                    Thread.sleep(moment);
                }
            });
        }
    }

    /** The process. */
    public static void main(String[] args) throws Exception {
        var client = Server.client(Integer.parseInt(args[0]));
        Locks locks = Locks.over(client, LONG);
        if (args[1].equals("future")) {
            locks.acquire("before", LONG).release();
            stand(0);
            Thread.sleep(500);
            locks.acquireAsync(Request.of("future")).thenCompose(Hold::releaseAsync).get(20, TimeUnit.SECONDS);
        } else {
            calls(locks);
        }
        locks.close();
        System.out.println("goes on");
        System.exit(0);
    }

    private static void work(Locks locks, String key) throws InterruptedException {
        try (Hold hold = locks.acquire(key, Duration.ofMillis(20))) {
            hold.giveWay(Duration.ofMillis(20), Duration.ZERO);
        } catch (NotAcquiredException error) {
            // Another one has it.
        }
    }

    private static void calls(Locks locks) throws Exception {
        Hold hold = locks.acquire(Request.of("kept").lease(Duration.ofSeconds(1)));
        var ended = new AtomicInteger();
        var end = new CompletableFuture<Void>();
        for (int i = 0; i < 200; i++) {
            String key = "virtual" + i % 30;
            begin(() -> {
                while (!end.isDone()) {
                    work(locks, key);
                }
                ended.incrementAndGet();
            });
        }
        Thread.sleep(1_000);
        stand(20);
        for (long from = System.nanoTime(); System.nanoTime() - from < TimeUnit.SECONDS.toNanos(15); ) {
            locks.acquire("platform", LONG).release();
            Thread.sleep(1);
        }
        end.complete(null);
        hold.release(); // or it was lost
        Server.await("the virtual threads end", () -> ended.get() == 200);
    }
}

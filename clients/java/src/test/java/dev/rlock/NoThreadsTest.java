package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.lettuce.core.KillArgs;
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.sync.RedisCommands;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** For a while a process cannot begin a thread. Afterwards all goes on. */
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NoThreadsTest {
    private static final String SETPRIV = "/usr/bin/setpriv";
    private static Server server;
    /** What the process is made of, to be read by anybody. */
    private static Path folder;

    @BeforeAll
    static void start() throws IOException {
        // Root has no such limit, and only root may become somebody who has.
        assumeTrue(System.getProperty("user.name").equals("root") && Files.isExecutable(Path.of(SETPRIV)));
        server = new Server();
        folder = Files.createTempDirectory("rlock-java-");
        int number = 0;
        for (String from : System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"))
                .split(File.pathSeparator)) {
            copy(Path.of(from), folder.resolve(++number + (from.endsWith(".jar") ? ".jar" : "")));
        }
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    private static void copy(Path from, Path to) throws IOException {
        if (!Files.exists(from)) {
            return;
        }
        try (var files = Files.walk(from)) {
            for (Path file : files.toList()) {
                Files.copy(file, to.resolve(from.relativize(file).toString()));
            }
        }
    }

    @AfterAll
    static void stop() throws IOException {
        if (server != null) {
            server.close();
            try (var files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
    }

    private void goesOn(String when) throws Exception {
        var path = new ArrayList<String>();
        try (var files = Files.list(folder)) {
            files.forEach(file -> path.add(file.toString()));
        }
        // A user of its own, for the limit counts all threads of one.
        var process = new ProcessBuilder(
                        SETPRIV, "--pdeathsig", "KILL", "--reuid", "" + (60_000 + server.port % 5_000), "--clear-groups",
                        "prlimit", "--nproc=120", Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp", String.join(File.pathSeparator, path), NoThreadsTest.class.getName(),
                        "" + server.port, when)
                .redirectErrorStream(true)
                .start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), said);
        assertTrue(said.contains("goes on"), said);
        server.awaitNothingLeft();
    }

    @Test
    void whenACallbackWantsOne() throws Exception {
        goesOn("callback");
    }

    @Test
    void whenTheConnectionBreaks() throws Exception {
        goesOn("connection");
    }

    @Test
    void whenTheFirstRequestIsMade() throws Exception {
        goesOn("first");
    }

    /** The process. */
    public static void main(String[] args) throws Exception {
        RedisClient client = Server.client(Integer.parseInt(args[0]));
        Locks locks = Locks.over(client);
        var admin = client.connect().sync();
        if (!args[1].equals("first")) {
            locks.acquireAsync(Request.of("before")).get().release();
            Thread.sleep(args[1].equals("callback") ? 6_000 : 0); // so long a thread without work is kept
        }
        withoutThreads(locks, admin, args[1].equals("connection"));
        locks.acquire("new", Duration.ofSeconds(20)).release();
        locks.close();
        System.out.println("goes on");
        System.exit(0);
    }

    private static void withoutThreads(Locks locks, RedisCommands<String, String> admin, boolean kill) throws Exception {
        var end = new CountDownLatch(1);
        List<Thread> many = new ArrayList<>();
        CompletableFuture<Hold> future = null;
        try {
            while (true) {
                var thread = new Thread(() -> {
                    try {
                        end.await();
                    } catch (InterruptedException error) {
                        // It ends.
                    }
                });
                thread.start();
                many.add(thread);
            }
        } catch (OutOfMemoryError error) {
            if (kill) {
                admin.clientKill(KillArgs.Builder.typePubsub());
                Thread.sleep(300);
            }
            future = asked(locks);
            Thread.sleep(1_000);
        }
        end.countDown();
        for (Thread thread : many) {
            thread.join();
        }
        if (future != null) {
            future.get(30, TimeUnit.SECONDS).release();
        }
    }

    /** Null: the call has failed because it could not. */
    private static CompletableFuture<Hold> asked(Locks locks) {
        try {
            return locks.acquireAsync(Request.of("meanwhile").waiting(Duration.ofSeconds(60)));
        } catch (OutOfMemoryError error) {
            return null;
        }
    }
}

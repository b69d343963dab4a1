package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import io.lettuce.core.RedisClient;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;

/** A server for each class of tests; locks, and a key of its own, for each test. */
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
abstract class WithServer {
    static final Duration LONG = Duration.ofSeconds(30);
    static final String OTHER = "other";

    /** On a class of tests: its server has not the module. */
    @Retention(RetentionPolicy.RUNTIME)
    @interface NoModule {}

    static Server server;
    static RedisClient client;
    Locks locks;
    String key;

    @BeforeAll
    static void startServer(TestInfo tests) {
        boolean plain = tests.getTestClass().orElseThrow().isAnnotationPresent(NoModule.class);
        server = plain ? Server.plain() : new Server();
        client = Server.client(server.port);
    }

    @AfterAll
    static void stopServer() {
        client.shutdown(0, 0, TimeUnit.SECONDS);
        server.close();
    }

    @BeforeEach
    void openLocks(TestInfo test) {
        locks = Locks.over(client);
        key = test.getTestMethod().orElseThrow().getName();
    }

    @AfterEach
    void closeLocks() {
        locks.close();
    }

    void take(String key) {
        server.say("RLOCK.ACQUIRE " + key + " " + OTHER + " 60000");
    }

    void give(String key) {
        server.say("RLOCK.RELEASE " + key + " " + OTHER);
    }

    interface Act {
        void run() throws Exception;
    }

    /** A thread that waits for the key is interrupted: that ends its wait, here and in the server. */
    void interruptedWhileItWaits(Act act) throws Exception {
        take(key);
        var thrown = new CompletableFuture<Throwable>();
        var thread = new Thread(() -> {
            try {
                act.run();
                thrown.complete(null);
            } catch (Throwable error) {
                thrown.complete(error);
            }
        });
        thread.start();
        server.awaitWaiters(key, 1);
        thread.interrupt();
        assertInstanceOf(InterruptedException.class, thrown.get(20, TimeUnit.SECONDS));
        server.awaitWaiters(key, 0);
    }

    static String reason(Hold hold) throws Exception {
        return hold.lost().toCompletableFuture().get(20, TimeUnit.SECONDS).reason();
    }

    static Throwable cause(Throwable error) {
        return error instanceof CompletionException ? error.getCause() : error;
    }
}

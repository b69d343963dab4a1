package dev.rlock;

import dev.rlock.LocksTest.Through;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** These locks by a proxy, and those of somebody else. */
abstract class WithOthers extends WithServer {
    static final String WANTED = "\nWANTED\n";

    Proxy proxy;
    private Through through;
    Through others;

    @BeforeEach
    void between() {
        proxy = new Proxy(server.port);
        through = LocksTest.through(proxy);
        locks.close();
        locks = through.locks();
        others = LocksTest.through(server.port);
    }

    @AfterEach
    void away() {
        through.close();
        others.close();
        proxy.close();
    }

    Request plain(int seconds) {
        return Request.of(key).watchdog(false).lease(Duration.ofSeconds(seconds));
    }

    CompletableFuture<Hold> waits(Request request) {
        var waits = others.locks().acquireAsync(request.waitingForEver());
        server.awaitWaiters(request.key(), 1);
        return waits;
    }

    static void has(CompletableFuture<Hold> waits) throws Exception {
        waits.get(20, TimeUnit.SECONDS).release();
    }

    static boolean end(CompletableFuture<Boolean> wanted) throws Exception {
        return wanted.get(20, TimeUnit.SECONDS);
    }

    static void awaitWanted(Hold hold, boolean wanted) {
        Server.await("it is wanted: " + wanted, () -> hold.isWanted() == wanted);
    }

    void awaitAsked(String word, int times) {
        Server.await(times + " times " + word, () -> proxy.said(word) >= times);
    }

    /** What the server has said before that is read. */
    void isRead(Locks by) throws Exception {
        by.acquire(key + ":beside", LONG).release();
    }
}

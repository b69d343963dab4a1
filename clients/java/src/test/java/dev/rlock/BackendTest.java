package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Servers that have less, and one that gets the module. */
@Timeout(value = 240, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class BackendTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    private Server server;
    private RedisClient client;

    private Locks locks(String... settings) {
        server = Server.plain(settings);
        client = Server.client(server.port);
        return Locks.over(client);
    }

    private Locks user(String rights) {
        locks().close();
        client.shutdown(0, 0, TimeUnit.SECONDS);
        server.say("ACL SETUSER bob on >secret " + rights);
        client = RedisClient.create(RedisURI.builder()
                .withHost("127.0.0.1").withPort(server.port).withAuthentication("bob", "secret".toCharArray()).build());
        return Locks.over(client);
    }

    @AfterEach
    void stop() {
        if (client != null) {
            client.shutdown(0, 0, TimeUnit.SECONDS);
            server.close();
        }
    }

    @Test
    void whoMayNotUseFunctionsHasTheScript() throws Exception {
        try (var locks = user("~* &* +@all -fcall -fcall_ro -function")) {
            Hold hold = locks.acquire("jobs", Duration.ZERO);
            assertEquals(Optional.of(Backend.SCRIPT), locks.backend());
            server.say("SCRIPT FLUSH");
            var wait = locks.acquireAsync(Request.of("jobs").waiting(LONG));
            hold.renew(LONG);
            server.say("SCRIPT FLUSH");
            hold.release();
            wait.get(20, TimeUnit.SECONDS).release();
            assertEquals(0L, server.say("EXISTS jobs"));
        }
    }

    @Test
    void whoMayLoadNothingIsTold() {
        try (var locks = user("~* &* +@all -function|load -script")) {
            var why = assertThrows(RefusedException.class, () -> locks.acquire(Request.of("jobs").waitingForEver()));
            assertEquals("NOPERM", why.code());
            assertTrue(why.getMessage().contains("redis-cli -x FUNCTION LOAD <rlock.lua"), why.getMessage());
        }
    }

    @Test
    void whoMayNotAskWhichCommandsThereAreHasTheFunctions() throws Exception {
        try (var locks = user("~* &* +@all -command")) {
            locks.acquire("jobs", Duration.ZERO).release();
            assertEquals(Optional.of(Backend.FUNCTIONS), locks.backend());
        }
    }

    /** Those that the README names. */
    @Test
    void fewRightsAreEnough() throws Exception {
        String begins = "ACL SETUSER worker on >secret ";
        String rights = Files.readString(Path.of("README.md")).lines()
                .filter(line -> line.startsWith(begins)).findFirst().orElseThrow();
        try (var locks = user(rights.substring(begins.length()))) {
            Hold hold = locks.acquire("lock:jobs", Duration.ZERO);
            var wait = locks.acquireAsync(Request.of("lock:jobs").waiting(LONG));
            Server.await("a place", () -> server.say("ZCARD rlock1_queue:{lock:jobs}").equals(1L));
            hold.release();
            wait.get(20, TimeUnit.SECONDS).release();
            locks.acquire(Request.of("lock:doc").read()).release();
            locks.acquire(Request.of("lock:doc").write()).release();
            locks.acquire(Request.of("lock:gpu").limit(2)).release();
            locks.acquire(Request.of("lock:a", "lock:b")).release();
            assertThrows(RefusedException.class, () -> locks.acquire(Request.of("jobs").waitingForEver()));
        }
    }

    @Test
    void aSessionGoesOverToTheModuleWhenItComes() throws Exception {
        System.setProperty("dev.rlock.askAgain", "100");
        try (var locks = locks("--enable-module-command", "yes")) {
            Hold hold = locks.acquire(Request.of("jobs").lease(Duration.ofSeconds(20)));
            Hold plain = locks.acquire(Request.of("plain").watchdog(false).lease(LONG));
            assertEquals(Optional.of(Backend.FUNCTIONS), locks.backend());
            var wait = locks.acquireAsync(Request.of("jobs").waiting(LONG));
            server.say("MODULE LOAD " + Server.module());
            server.awaitWaiters("jobs", 1);
            assertEquals(Optional.of(Backend.MODULE), locks.backend());
            Server.await("the server renews it", () -> server.say("INFO rlock").toString().contains("rlock_watchdog_holds:1"));
            assertFalse(hold.isLost());
            assertFalse(plain.isLost());
            hold.release();
            Hold next = wait.get(20, TimeUnit.SECONDS);
            server.say("RLOCK.FORCE jobs");
            assertEquals("forced", WithServer.reason(next));
            server.say("RLOCK.FORCE plain");
            assertEquals("forced", WithServer.reason(plain));
        } finally {
            System.clearProperty("dev.rlock.askAgain");
        }
    }

    /** MRENEW has no watchdog: this process goes on renewing them. */
    @Test
    void severalKeysGoOverToo() throws Exception {
        System.setProperty("dev.rlock.askAgain", "100");
        try (var locks = locks("--enable-module-command", "yes")) {
            Hold hold = locks.acquire(Request.of("a", "b").lease(Duration.ofSeconds(6)));
            server.say("MODULE LOAD " + Server.module());
            Server.await("it is used", () -> locks.backend().equals(Optional.of(Backend.MODULE)));
            Thread.sleep(9_000);
            assertFalse(hold.isLost());
            server.say("RLOCK.FORCE b");
            assertEquals("forced", WithServer.reason(hold));
            Server.await("the other key is released", () -> server.isFree("a"));
        } finally {
            System.clearProperty("dev.rlock.askAgain");
        }
    }

    @Test
    void aServerThatComesBackWithoutTheModuleIsUsedToo() throws Exception {
        server = new Server("--enable-module-command", "yes");
        client = Server.client(server.port);
        try (var locks = Locks.over(client)) {
            locks.acquire("jobs", Duration.ZERO).release();
            assertEquals(Optional.of(Backend.MODULE), locks.backend());
            server.awaitNothingLeft();
            Server.await("it is unloaded", () -> {
                try {
                    server.say("MODULE UNLOAD rlock");
                    return true;
                } catch (IllegalStateException error) {
                    return false; // for a second after the last lease
                }
            });
            locks.acquire("jobs", Duration.ZERO).release();
            assertEquals(Optional.of(Backend.FUNCTIONS), locks.backend());
        }
    }

    @Test
    void keysBesideALockAreDeclaredInItsSlotAlone() {
        for (String name : List.of("jobs", "a{b}c", "{b}")) {
            String beside = name.contains("{") ? name : "{" + name + "}";
            assertEquals(
                    List.of(name, "redisson_lock_token:" + beside, "rlock1_queue:" + beside, "rlock1_places:" + beside),
                    keys(name));
        }
        for (String name : List.of("a{b", "{}", "{}x}", "job}")) {
            assertEquals(List.of(name), keys(name));
        }
        var target = new Target(Request.of("jobs"), "me");
        assertEquals(List.of("jobs"), target.renew(5).call().keys());
        assertEquals(List.of("jobs", "rlock1_queue:{jobs}", "rlock1_places:{jobs}"), target.releaseAll().call().keys());
    }

    private static List<String> keys(String name) {
        return new Target(Request.of(name), "me").acquire(0, "channel", 1).call().keys();
    }
}

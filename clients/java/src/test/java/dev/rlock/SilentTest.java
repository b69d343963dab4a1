package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.RedisClient;
import io.lettuce.core.cluster.RedisClusterClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A process that says nothing any more loses what somebody waits for, and learns it when it wakes. */
class SilentTest extends WithServer {
    /** Longer than a server stands still on a busy machine: with an answer that late the connection is lost. */
    private static final Duration SHORT = Duration.ofSeconds(4);
    private static final String HEARTBEAT = "\nRLOCK.HEARTBEAT\n";
    private static final String PING = "\nPING\n";
    private Proxy proxy;
    private RedisClient byProxy;

    @BeforeEach
    void openProxy() {
        proxy = new Proxy(server.port);
        byProxy = Server.client(proxy.port);
    }

    @AfterEach
    void closeProxy() {
        server.say("ACL SETUSER default +rlock.heartbeat");
        proxy.close();
        byProxy.shutdown(0, 0, TimeUnit.SECONDS);
    }

    /** A process that has the lock. */
    private final class Holder implements AutoCloseable {
        private final Process process;
        private final BufferedReader said;

        /** @param patience in ms; 0: for ever */
        Holder(long patience) throws IOException {
            process = new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                            "-cp", System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                            SilentTest.class.getName(), "" + server.port, key, "" + patience)
                    .redirectErrorStream(true)
                    .start();
            said = new BufferedReader(new InputStreamReader(process.getInputStream()));
            says("holds");
        }

        void says(String what) throws IOException {
            String line;
            do {
                line = said.readLine();
                assertNotNull(line, "it ended before " + what);
            } while (!line.equals(what));
        }

        void signal(String name) throws Exception {
            new ProcessBuilder("kill", "-" + name, "" + process.pid()).start().waitFor();
        }

        void releases(String end) throws IOException {
            process.getOutputStream().write('\n');
            process.getOutputStream().flush();
            says(end);
        }

        @Override
        public void close() {
            process.destroyForcibly();
        }
    }

    /** The process. */
    public static void main(String[] args) throws Exception {
        var client = Server.client(Integer.parseInt(args[0]));
        long patience = Long.parseLong(args[2]);
        var locks = Locks.over(
                client, LONG, Backend.MODULE, patience == 0 ? null : Duration.ofMillis(patience));
        var hold = locks.acquire(Request.of(args[1]).lease(SHORT));
        hold.lost().thenAccept(lost -> System.out.println("lost " + lost.reason()));
        System.out.println("holds");
        System.in.read();
        try {
            hold.release();
            System.out.println("released");
        } catch (LostException lost) {
            System.out.println("released: " + lost.reason());
        }
        System.exit(0);
    }

    private CompletableFuture<Hold> somebodyWaits() {
        var waits = locks.acquireAsync(Request.of(key).waitingForEver());
        server.awaitWaiters(key, 1);
        return waits;
    }

    private static void has(CompletableFuture<Hold> waits) throws Exception {
        waits.get(30, TimeUnit.SECONDS).release();
    }

    @Test
    void itLosesWhatSomebodyWaitsFor() throws Exception {
        try (var holder = new Holder(2000)) {
            var waits = somebodyWaits();
            holder.signal("STOP");
            Hold hold = waits.get(30, TimeUnit.SECONDS);
            holder.signal("CONT");
            holder.says("lost silent");
            holder.releases("released: silent");
            assertFalse(hold.isLost());
            hold.release();
        }
    }

    @Test
    void itLosesNothingWithinItsPatience() throws Exception {
        stoppedFor6s(60_000, true);
    }

    @Test
    void itLosesNothingWithoutAPatience() throws Exception {
        stoppedFor6s(0, true);
    }

    @Test
    void itLosesNothingThatNobodyWaitsFor() throws Exception {
        stoppedFor6s(1000, false);
    }

    private void stoppedFor6s(long patience, boolean wanted) throws Exception {
        try (var holder = new Holder(patience)) {
            var waits = wanted ? somebodyWaits() : null;
            holder.signal("STOP");
            Thread.sleep(6000);
            assertFalse(wanted && waits.isDone());
            holder.signal("CONT");
            holder.releases("released");
            if (wanted) {
                has(waits);
            }
        }
    }

    private void awaitSaid(String what, int times) {
        Server.await(times + " times" + what, () -> proxy.said(what) >= times);
    }

    @Test
    void theServerIsToldThePatienceOrTheLongestLeaseThatItRenews() throws Exception {
        try (var locks = Locks.over(byProxy)) {
            Hold hold = locks.acquire(Request.of(key).lease(Duration.ofSeconds(6)));
            Hold plain = locks.acquire(Request.of(key + ":plain").watchdog(false).lease(Duration.ofSeconds(50)));
            Hold longer = locks.acquire(Request.of(key + ":long").lease(Duration.ofSeconds(40)));
            awaitSaid(HEARTBEAT + "40000\n", 2);
            longer.release();
            awaitSaid(HEARTBEAT + "30000\n", proxy.said(HEARTBEAT + "30000\n") + 1);
            hold.renew(Duration.ofSeconds(35));
            Hold shorter = locks.acquire(Request.of(key + ":short").lease(Duration.ofSeconds(5)));
            awaitSaid(HEARTBEAT + "35000\n", 1);
            assertEquals(0, proxy.said(PING));
            for (Hold one : new Hold[] {hold, plain, shorter}) {
                one.release();
            }
        }
    }

    @Test
    void theFirstWordOfEachConnectionIsThePatience() throws Exception {
        try (var locks = Locks.over(byProxy, LONG, Backend.MODULE, Duration.ofMillis(4321))) {
            for (int i = 0; i < 2; i++) {
                Hold hold = locks.acquire(key, LONG);
                proxy.cut();
                assertEquals("connection", reason(hold));
            }
        }
        var connections = proxy.asked().replace("INFO\nRLOCK.ACQUIRE\n", "").split("\nSUBSCRIBE\n");
        assertTrue(connections.length > 2, proxy.asked());
        for (String one : Arrays.stream(connections).skip(1).filter(said -> said.contains("RLOCK.")).toList()) {
            assertEquals(one.indexOf("\nRLOCK."), one.indexOf(HEARTBEAT + "4321\n"), one);
        }
    }

    @Test
    void withoutAPatienceItSaysPing() throws Exception {
        try (var locks = Locks.over(byProxy, LONG, Backend.MODULE, null)) {
            Hold hold = locks.acquire(Request.of(key).lease(SHORT));
            awaitSaid(PING, 4);
            assertEquals(0, proxy.said(HEARTBEAT));
            hold.release();
        }
    }

    /** And is alive by that. */
    private void goesOnByPing(Locks locks, String asked) throws Exception {
        Hold hold = locks.acquire(Request.of(key).lease(SHORT));
        awaitSaid(PING, 5);
        // Others may be sent before the first is answered.
        assertNotEquals(0, proxy.said(asked));
        assertTrue(proxy.said(asked) <= 3, proxy.asked());
        assertFalse(hold.isLost());
        hold.release();
    }

    @Test
    void aServerThatDoesNotKnowHeartbeatHasPing() throws Exception {
        proxy.unknown("RLOCK.HEARTBEAT", "RLOCK.HEARTBEET");
        try (var locks = Locks.over(byProxy)) {
            goesOnByPing(locks, "\nRLOCK.HEARTBEET\n");
        }
    }

    @Test
    void whoMayNotSayHeartbeatSaysPingOnThatConnection() throws Exception {
        server.say("ACL SETUSER default -rlock.heartbeat");
        try (var locks = Locks.over(byProxy)) {
            goesOnByPing(locks, HEARTBEAT);
            Hold hold = locks.acquire(key, LONG);
            server.say("ACL SETUSER default +rlock.heartbeat");
            proxy.cut();
            assertEquals("connection", reason(hold));
            int before = proxy.said(HEARTBEAT);
            hold = locks.acquire(Request.of(key).waiting(LONG).lease(SHORT));
            awaitSaid(HEARTBEAT, before + 4);
            hold.release();
        }
    }

    @Test
    void aPatienceIsLongerThanNothing() {
        var cluster = RedisClusterClient.create("redis://127.0.0.1");
        for (var wrong : new Duration[] {Duration.ZERO, Duration.ofSeconds(-1)}) {
            for (var open : new Runnable[] {
                () -> Locks.over(client, LONG, Backend.SCRIPT, wrong),
                () -> Locks.over(cluster, LONG, Backend.SCRIPT, wrong)
            }) {
                var error = assertThrows(IllegalArgumentException.class, open::run);
                assertTrue(error.getMessage().startsWith("patience"), error.getMessage());
            }
        }
        cluster.shutdown(0, 0, TimeUnit.SECONDS);
    }
}

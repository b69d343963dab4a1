package interop.harness;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;

/** The servers of one test, started as they are needed, and the applications that use them. */
public final class Site implements AutoCloseable {
    private static final long WATCHDOG_MS = 30_000;
    private static final AtomicInteger NAMES = new AtomicInteger();

    private final boolean cluster;
    private final long watchdogMs;
    private final Map<Integer, Server> servers = new TreeMap<>();
    private final Map<Integer, Resp> controls = new TreeMap<>();
    private final List<Application> applications = new ArrayList<>();

    private Site(boolean cluster, long watchdogMs) {
        this.cluster = cluster;
        this.watchdogMs = watchdogMs;
    }

    public static Site open() {
        return new Site(false, WATCHDOG_MS);
    }

    /** With this lockWatchdogTimeout of Redisson's. */
    public static Site withWatchdog(long ms) {
        return new Site(false, ms);
    }

    /** Each server is a cluster of its own. */
    public static Site cluster() {
        return new Site(true, WATCHDOG_MS);
    }

    public boolean isCluster() {
        return cluster;
    }

    public synchronized Server server(int number) {
        return servers.computeIfAbsent(number,
                n -> cluster ? Server.startCluster() : Server.start());
    }

    public Resp control() {
        return control(0);
    }

    /** A connection to look with, for commands that do not block. */
    public synchronized Resp control(int server) {
        return controls.computeIfAbsent(server, n -> server(n).connect());
    }

    /** A new one, closed with the site at the latest. */
    public synchronized Application application() {
        Application application = new Application(this, watchdogMs);
        applications.add(application);
        return application;
    }

    /** The first one, which many tests share. */
    public synchronized Application firstApplication() {
        return applications.isEmpty() ? application() : applications.get(0);
    }

    /** A name that was not used before. */
    public static String name(String about) {
        return about + "-" + NAMES.incrementAndGet();
    }

    @Override
    public void close() {
        // All at once, for each takes its time.
        applications.parallelStream().forEach(Application::close);
        controls.values().forEach(Resp::close);
        RuntimeException crash = null;
        for (Server server : servers.values()) {
            try {
                server.close();
            } catch (RuntimeException e) {
                crash = e;
            }
        }
        if (crash != null) {
            throw crash;
        }
    }
}

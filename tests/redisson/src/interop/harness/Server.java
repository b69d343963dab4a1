package interop.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** A server process with the module loaded, on a port and in a directory of its own. */
public final class Server implements AutoCloseable {
    /** Below the ports that the kernel hands to clients, also with a cluster's bus added. */
    private static final int FIRST_PORT = 10_000;
    private static final int PORTS = 10_000;
    private static final int BUS = 10_000;

    /** Appears in its directory when the server has ended. */
    private static final String ENDED = "ended";

    /**
     * Stands between this process and the server: when its input ends, be it by close()
     * or because this process died of whatever, the server and its files go.
     */
    private static final String GUARD = """
            trap : INT TERM HUP
            dir=$1; shift
            exec 3<&0
            "$@" >"$dir/output" 2>&1 3<&- & server=$!
            cat <&3 >/dev/null & input=$!
            wait -n $server $input
            kill -9 $server 2>/dev/null
            wait $server 2>/dev/null
            touch "$dir/ended"
            wait $input
            rm -rf "$dir"
            """;

    private final String[] options;
    private final Path dir;
    private int port;
    private Process guard;

    private Server(String[] options) throws IOException {
        this.options = options;
        this.dir = Files.createTempDirectory("rlock-interop-").toRealPath();
    }

    /** Starts with options in the form of the command line. */
    public static Server start(String... options) {
        try {
            Server server = new Server(options);
            server.launch();
            return server;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** One that is a whole cluster by itself: all slots are its own. */
    public static Server startCluster() {
        // Alone, it would not know its own address and could not tell Redisson.
        Server server = start("--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1");
        try (Resp control = server.connect()) {
            control.say("CLUSTER ADDSLOTSRANGE 0 16383");
            Wait.until("the cluster is up", () ->
                    control.say("CLUSTER INFO").toString().contains("cluster_state:ok"));
        }
        return server;
    }

    public int port() {
        return port;
    }

    public Resp connect() {
        return new Resp(port);
    }

    private void launch() throws IOException {
        for (int round = 0; round < 20; round++) {
            port = freePort();
            guard = new ProcessBuilder(command()).directory(dir.toFile())
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
            if (Wait.becomes(this::isReady, this::hasEnded)) {
                return;
            }
            String log = logTail();
            stop();
            if (!log.contains("Address already in use")) {
                throw new IllegalStateException("the server does not start:\n" + log);
            }
            Files.createDirectory(dir);
        }
        throw new IllegalStateException("no free port");
    }

    private List<String> command() {
        List<String> command = new ArrayList<>(List.of("bash", "-c", GUARD, "guard",
                dir.toString(), Settings.server(),
                "--port", Integer.toString(port), "--bind", "127.0.0.1",
                "--dir", dir.toString(), "--save", "", "--logfile", "server.log",
                "--daemonize", "no", "--loadmodule", Settings.module()));
        command.addAll(List.of(options));
        return command;
    }

    /** Whether the server on the port answers, and is ours. */
    private boolean isReady() {
        try (Resp control = connect()) {
            List<?> pair = (List<?>) control.say("CONFIG GET dir");
            return pair.get(1).equals(dir.toString());
        } catch (RuntimeException notYet) {
            return false;
        }
    }

    private boolean hasEnded() {
        return Files.exists(dir.resolve(ENDED));
    }

    private static int freePort() {
        for (int round = 0; round < 1000; round++) {
            int port = FIRST_PORT + ThreadLocalRandom.current().nextInt(PORTS);
            if (isFree(port) && isFree(port + BUS)) {
                return port;
            }
        }
        throw new IllegalStateException("no free port");
    }

    private static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket()) {
            socket.bind(new InetSocketAddress("127.0.0.1", port));
            return true;
        } catch (IOException taken) {
            return false;
        }
    }

    /** What it said, first of all if it refuses its options. */
    private String log() {
        StringBuilder log = new StringBuilder();
        for (String name : List.of("output", "server.log")) {
            try {
                log.append(Files.readString(dir.resolve(name), StandardCharsets.ISO_8859_1));
            } catch (IOException none) {
                // It did not come so far.
            }
        }
        return log.toString();
    }

    private String logTail() {
        List<String> lines = log().lines().toList();
        return String.join("\n", lines.subList(Math.max(0, lines.size() - 60), lines.size()));
    }

    private void stop() {
        try {
            guard.getOutputStream().close();
            guard.waitFor();
        } catch (IOException | InterruptedException e) {
            guard.destroy();
        }
    }

    /** Fails if the server crashed meanwhile. */
    @Override
    public void close() {
        boolean well = isReady() && !log().contains("BUG REPORT START");
        String tail = logTail();
        stop();
        if (!well) {
            throw new IllegalStateException("the server crashed:\n" + tail);
        }
    }
}

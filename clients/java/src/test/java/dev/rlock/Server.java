package dev.rlock;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A server with the module, on a port and in a directory of its own, which dies with this process. */
final class Server implements AutoCloseable {
    static final Duration SOON = Duration.ofSeconds(20);

    final int port = Ports.free();
    /** Where the settings name a tls-port ${port}. */
    final int tlsPort = Ports.free();
    private final Path directory;
    private final List<String> settings;
    private final boolean withModule;
    private Process process;
    private RedisClient client;
    private StatefulRedisConnection<String, String> admin;

    Server(String... settings) {
        this(true, settings);
    }

    /** One without the module. */
    static Server plain(String... settings) {
        return new Server(false, settings);
    }

    private Server(boolean withModule, String... settings) {
        this.withModule = withModule;
        this.settings = Stream.of(settings).map(word -> word.replace("${port}", "" + tlsPort)).toList();
        try {
            directory = Files.createTempDirectory("rlock-java-");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(this::kill));
        start();
        client = client(port);
        admin = client.connect();
    }

    static RedisClient client(int port) {
        return RedisClient.create(RedisURI.create("127.0.0.1", port));
    }

    private static String from(String variable, String otherwise) {
        String value = System.getenv(variable);
        return value == null ? otherwise : value;
    }

    void start() {
        var words = new ArrayList<String>();
        if (Files.isExecutable(Path.of("/usr/bin/setpriv"))) {
            words.addAll(List.of("/usr/bin/setpriv", "--pdeathsig", "KILL"));
        }
        words.addAll(List.of(
                from("RLOCK_SERVER", "redis-server"), "--port", "" + port, "--save", "", "--dir", directory.toString()));
        if (withModule) {
            words.addAll(List.of("--loadmodule", module().toString()));
        }
        words.addAll(settings);
        try {
            process = new ProcessBuilder(words)
                    .redirectErrorStream(true)
                    .redirectOutput(directory.resolve("log").toFile())
                    .start();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        await("the server on " + port, () -> {
            try (var to = new Socket("127.0.0.1", port)) {
                to.setSoTimeout(1000);
                to.getOutputStream().write("PING\r\n".getBytes(StandardCharsets.UTF_8));
                // While it loads its data it says LOADING.
                return to.getInputStream().read() == '+';
            } catch (IOException error) {
                if (!process.isAlive()) {
                    throw new IllegalStateException(Files.readString(directory.resolve("log")));
                }
                return false;
            }
        });
    }

    static Path module() {
        return Path.of(from("RLOCK_MODULE", "../../target/release/librlock.so")).toAbsolutePath();
    }

    void kill() {
        process.destroyForcibly();
        try {
            process.waitFor();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** STOP or CONT. */
    void signal(String name) {
        try {
            new ProcessBuilder("kill", "-" + name, "" + process.pid()).start().waitFor();
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /** What the server says to a line of words. */
    Object say(String line) {
        var words = line.split(" ");
        var args = new CommandArgs<>(StringCodec.UTF8);
        Arrays.stream(words).skip(1).forEach(args::add);
        ProtocolKeyword name = new ProtocolKeyword() {
            @Override
            public byte[] getBytes() {
                return words[0].getBytes(StandardCharsets.US_ASCII);
            }

            @Override
            public String toString() {
                return words[0];
            }
        };
        boolean list = List.of("RLOCK.INFO", "RLOCK.WAITERS", "PUBSUB").contains(words[0])
                || line.contains(" GETKEYSINSLOT ");
        var output = list ? new NestedMultiOutput<>(StringCodec.UTF8) : new Reply();
        try {
            return admin.async().dispatch(name, output, args).get(20, TimeUnit.SECONDS);
        } catch (Exception error) {
            throw new IllegalStateException(line, error);
        }
    }

    private Object info(String key, String field) {
        var flat = (List<?>) say("RLOCK.INFO " + key);
        return flat.get(flat.indexOf(field) + 1);
    }

    boolean isFree(String key) {
        return info(key, "mode").equals("free");
    }

    long waiters(String key) {
        return (Long) info(key, "waiters");
    }

    int holders(String key) {
        return ((List<?>) info(key, "holders")).size();
    }

    /** Of the connections, those of this name. */
    List<String> named(String name) {
        return say("CLIENT LIST").toString().lines().filter(line -> line.contains(" name=" + name + " ")).toList();
    }

    void awaitWaiters(String key, long many) {
        await(many + " wait for " + key, () -> waiters(key) == many);
    }

    void awaitFree(String key) {
        await(key + " is free", () -> isFree(key));
    }

    void awaitNothingLeft() {
        await("nothing is held and nobody waits", () -> {
            String info = say("INFO rlock").toString();
            return info.contains("rlock_held:0\r") && info.contains("rlock_waiting:0\r");
        });
    }

    static void await(String what, Callable<Boolean> condition) {
        long end = System.nanoTime() + SOON.toNanos();
        try {
            while (!condition.call()) {
                if (System.nanoTime() > end) {
                    throw new AssertionError("not within " + SOON + ": " + what);
                }
                Thread.sleep(5);
            }
        } catch (RuntimeException error) {
            throw error;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void close() {
        admin.close();
        client.shutdown(0, 0, TimeUnit.SECONDS);
        signal("CONT");
        kill();
        try (var files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}

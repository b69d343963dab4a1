import dev.rlock.Backend;
import dev.rlock.Locks;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import java.io.File;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** What `open` makes: the client as a program would make it, and the locks over it. */
final class Opening {
    private Opening() {}

    static Locks of(Driver.Line line) {
        if (line.has("ask_again_ms")) {
            System.setProperty("dev.rlock.askAgain", "" + line.number("ask_again_ms"));
        }
        var least = "module".equals(line.text("backend")) ? Backend.MODULE : Backend.SCRIPT;
        var uri = uri(line);
        var timeout = line.has("timeout") ? line.time("timeout") : Duration.ofSeconds(5);
        var patience = line.words().containsKey("patience") ? patience(line) : Duration.ofSeconds(30);
        if (line.is("cluster")) {
            var client = RedisClusterClient.create(uri);
            if (line.is("tls")) {
                client.setOptions(ClusterClientOptions.builder().sslOptions(trust(line)).build());
            }
            warm(client::refreshPartitions);
            return Locks.over(client, timeout, least, patience);
        }
        var client = RedisClient.create(uri);
        if (line.is("tight")) {
            client.setOptions(tight());
        }
        if (line.is("tls")) {
            client.setOptions(ClientOptions.builder().sslOptions(trust(line)).build());
        }
        warm(() -> client.connectPubSub().close());
        return Locks.over(client, timeout, least, patience);
    }

    /** Null: none. */
    private static Duration patience(Driver.Line line) {
        Object given = line.words().get("patience");
        if (given != null && !(given instanceof Long)) {
            throw new IllegalArgumentException("patience is a number of ms, or null");
        }
        return given == null ? null : line.time("patience");
    }

    /** What a program may have set for its own commands, as narrow as it can be. */
    private static ClientOptions tight() {
        return ClientOptions.builder()
                .timeoutOptions(TimeoutOptions.enabled(Duration.ofMillis(200)))
                .requestQueueSize(1)
                .autoReconnect(false)
                .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .build();
    }

    private static RedisURI uri(Driver.Line line) {
        var uri = RedisURI.builder()
                .withHost(line.text("host"))
                .withPort((int) line.number("port"))
                .withSsl(line.is("tls"));
        if (line.is("tight")) {
            uri.withTimeout(Duration.ofMillis(200));
        }
        if (line.has("user")) {
            uri.withAuthentication(line.text("user"), line.text("password").toCharArray());
        } else if (line.has("password")) {
            uri.withPassword(line.text("password").toCharArray());
        }
        return uri.build();
    }

    private static SslOptions trust(Driver.Line line) {
        return SslOptions.builder().jdkSslProvider().trustManager(new File(line.text("ca"))).build();
    }

    /** So that a short wait is not spent on loading Lettuce's classes. */
    private static void warm(Runnable connects) {
        try {
            CompletableFuture.runAsync(connects).get(3, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException error) {
            // The locks will see.
        }
    }
}

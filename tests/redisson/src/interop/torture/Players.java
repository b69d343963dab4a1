package interop.torture;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Takes and frees locks as the torture of clients asks on the standard input: {@code PLAYER VERB ...}, a
 * thread for each player, which has one lock at a time. Each request has one line as its answer.
 */
public final class Players {
    private static final int TIMEOUT_MS = 2_000;

    private Players() {
    }

    public static void main(String[] args) throws IOException {
        RedissonClient redisson = connect(Integer.parseInt(args[0]), Long.parseLong(args[1]));
        System.out.println("ready");
        System.out.flush();
        Map<String, Player> players = new HashMap<>();
        BufferedReader input = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            players.computeIfAbsent(words[0], name -> new Player(name, redisson)).ask(words);
        }
        System.exit(0);
    }

    private static RedissonClient connect(int port, long watchdogMs) {
        Config config = new Config();
        config.setThreads(4);
        config.setNettyThreads(2);
        config.setLockWatchdogTimeout(watchdogMs);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setTimeout(TIMEOUT_MS)
                .setRetryAttempts(2).setConnectionMinimumIdleSize(1).setConnectionPoolSize(8);
        return Redisson.create(config);
    }
}

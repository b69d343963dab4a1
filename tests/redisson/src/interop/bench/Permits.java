package interop.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A process of the benchmark: some clients, each with a thread, share the permits with those
 * of other processes. `Permits rlock|redisson port clients`. It is told what to do line by
 * line, and replies a line: `go`, `count` (the grants so far), `keep n` (the next n are not
 * given back; the reply comes when it has them), `stop` (and wait until all have), `available`.
 */
public final class Permits {
    static final String NAME = "permits";
    static final int LIMIT = 10;
    static final int LEASE_MS = 30_000;

    private final AtomicLong grants = new AtomicLong();
    /** So many grants more are kept. */
    private final AtomicInteger keep = new AtomicInteger();
    private volatile CountDownLatch kept = new CountDownLatch(0);
    private volatile boolean isStopping;
    private final List<Client> clients = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();

    private Permits() {}

    public static void main(String[] words) throws IOException, InterruptedException {
        Permits permits = new Permits();
        int port = Integer.parseInt(words[1]);
        for (int i = 0; i < Integer.parseInt(words[2]); i++) {
            String owner = ProcessHandle.current().pid() + "-" + i;
            Client client = words[0].equals("rlock") ? new Native(port, owner) : new Theirs(port);
            permits.clients.add(client);
        }
        say("ready");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            say(permits.obey(line.split(" ")));
        }
        System.exit(0);
    }

    private static void say(Object line) {
        System.out.println(line);
        System.out.flush();
    }

    private Object obey(String[] words) throws InterruptedException {
        switch (words[0]) {
            case "go" -> clients.forEach(this::begin);
            case "count" -> {
                return grants.get();
            }
            case "keep" -> {
                kept = new CountDownLatch(Integer.parseInt(words[1]));
                keep.set(Integer.parseInt(words[1]));
                kept.await(10, TimeUnit.SECONDS);
                return Integer.parseInt(words[1]) - kept.getCount();
            }
            case "stop" -> {
                isStopping = true;
                for (Thread thread : threads) {
                    thread.join(10_000);
                }
            }
            case "available" -> {
                return clients.get(0).available();
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "ok";
    }

    private void begin(Client client) {
        Thread thread = new Thread(() -> work(client));
        thread.setDaemon(true);
        thread.setUncaughtExceptionHandler((it, error) -> {
            error.printStackTrace();
            System.exit(1);
        });
        threads.add(thread);
        thread.start();
    }

    private void work(Client client) {
        while (!isStopping) {
            client.take();
            grants.incrementAndGet();
            if (keep.get() > 0 && keep.getAndDecrement() > 0) {
                kept.countDown();
                return;
            }
            client.giveBack();
        }
    }
}

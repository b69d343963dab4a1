package bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicLong;

/** The benchmark's program in Java: Main SIDE PORT WORKERS. Its orders stand in
 * bench/clients/language.rs. */
public final class Main {
    private static final AtomicLong COUNT = new AtomicLong();
    private static volatile boolean stopped;

    private Main() {}

    interface Act {
        void run() throws Exception;
    }

    public static void main(String[] words) throws Exception {
        int port = Integer.parseInt(words[1]);
        int workers = Integer.parseInt(words[2]);
        Side side = words[0].equals("rlock") ? new Ours(port) : new Theirs(port, words[0].endsWith("fair"));
        side.warmUp();
        System.out.println("ready");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] order = line.split(" ");
            int number = order.length > 1 ? Integer.parseInt(order[1]) : 0;
            System.out.println(run(side, workers, order[0], number));
        }
        System.exit(0);
    }

    private static long run(Side side, int workers, String order, int number) throws Exception {
        switch (order) {
            case "go":
                for (int n = 0; n < workers; n++) {
                    String me = ProcessHandle.current().pid() + ":" + n;
                    Thread worker = new Thread(() -> contend(side, me));
                    worker.setDaemon(true);
                    worker.start();
                }
                return 0;
            case "count":
                return COUNT.get();
            case "stop":
                stopped = true;
                return 0;
            case "pairs":
                return timed(number, ((Ours) side)::pair);
            case "pings":
                return timed(number, ((Ours) side)::ping);
            case "crowd":
                return ((Ours) side).crowd(number);
            default:
                throw new IllegalArgumentException(order);
        }
    }

    private static void contend(Side side, String me) {
        try {
            Side.Turn turn = side.worker(me);
            while (!stopped) {
                if (!me.equals(turn.take())) {
                    COUNT.incrementAndGet();
                }
            }
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    /** ns for each. */
    private static long timed(int ms, Act act) throws Exception {
        long begin = System.nanoTime();
        long done = 0;
        while (System.nanoTime() < begin + ms * 1_000_000L) {
            act.run();
            done++;
        }
        return (System.nanoTime() - begin) / done;
    }
}

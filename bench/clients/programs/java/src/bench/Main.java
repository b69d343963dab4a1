package bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/** The benchmark's program in Java: Main SIDE PORT WORKERS TURNS MS. Its orders
 * stand in bench/clients/language.rs. */
public final class Main {
    private static final Queue<Had> HAD = new ConcurrentLinkedQueue<>();

    private Main() {}

    /** By the clock that is the same for all processes (CLOCK_MONOTONIC). */
    record Had(int number, long acquired, long released) {
        @Override
        public String toString() {
            return number + " " + acquired + " " + released;
        }
    }

    interface Act {
        void run() throws Exception;
    }

    public static void main(String[] words) throws Exception {
        int port = Integer.parseInt(words[1]);
        int workers = Integer.parseInt(words[2]);
        Side side = words[0].equals("rlock")
                ? new Ours(port)
                : new Theirs(port, words[0].contains("fair"), words[0].contains("shared"));
        List<Side.Worker> crew = new ArrayList<>();
        for (int n = 0; n < workers; n++) {
            crew.add(side.worker());
        }
        try (Side.Worker other = side.worker()) {
            warmUp(List.of(crew.get(0), other), Integer.parseInt(words[3]), Integer.parseInt(words[4]));
        }
        System.out.println("ready");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] order = line.split(" ");
            int number = order.length > 1 ? Integer.parseInt(order[1]) : 0;
            int second = order.length > 2 ? Integer.parseInt(order[2]) : 0;
            System.out.println(run(side, crew, order[0], number, second));
        }
        System.exit(0);
    }

    private static Object run(Side side, List<Side.Worker> crew, String order, int number, int second)
            throws Exception {
        switch (order) {
            case "go":
                for (int n = 0; n < crew.size(); n++) {
                    int me = n;
                    Side.Worker worker = crew.get(n);
                    Runnable act = () -> HAD.add(new Had(me, System.nanoTime(), System.nanoTime()));
                    start(() -> {
                        while (true) {
                            worker.turn(Ours.KEY, act);
                        }
                    });
                }
                return 0;
            case "turns":
                return HAD.stream().map(Had::toString).collect(Collectors.joining(" "));
            case "pairs":
                return timed(number, side instanceof Ours ours
                        ? ours::pair
                        : () -> crew.get(0).turn("bench:other", () -> {}));
            case "pings":
                return timed(number, ((Ours) side)::ping);
            case "uses":
                return timed(number, ((Ours) side).uses());
            case "sets":
                return timed(number, ((Ours) side)::set);
            case "often": {
                Act turn = ((Ours) side).shared(number == 1);
                start(() -> {
                    while (true) {
                        turn.run();
                        Thread.sleep(2);
                    }
                });
                return 0;
            }
            case "shares": {
                Act turn = ((Ours) side).shared(number == 1);
                return median(second, 2, () -> {
                    long begin = System.nanoTime();
                    turn.run();
                    return System.nanoTime() - begin;
                });
            }
            case "takes":
                return median(number, 10, ((Ours) side)::take);
            case "crowd":
                return ((Ours) side).crowd(number);
            default:
                throw new IllegalArgumentException(order);
        }
    }

    private static void warmUp(List<Side.Worker> two, int turns, long ms) throws InterruptedException {
        String own = "warm:" + ProcessHandle.current().pid();
        long end = System.nanoTime() + ms * 1_000_000;
        AtomicInteger left = new AtomicInteger(turns);
        List<Thread> threads = new ArrayList<>();
        for (Side.Worker worker : two) {
            threads.add(start(() -> {
                while (left.get() > 0 && System.nanoTime() < end) {
                    worker.turn(own, left::decrementAndGet);
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static Thread start(Act act) {
        Thread thread = new Thread(() -> {
            try {
                act.run();
            } catch (Exception error) {
                error.printStackTrace();
                System.exit(1);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    interface Took {
        long run() throws Exception;
    }

    /** With a pause of so many ms behind each. */
    private static long median(int count, int pause, Took act) throws Exception {
        long[] took = new long[count];
        for (int n = 0; n < count; n++) {
            took[n] = act.run();
            Thread.sleep(pause);
        }
        Arrays.sort(took);
        return took[count / 2];
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

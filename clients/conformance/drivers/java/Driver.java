import dev.rlock.DeadlockException;
import dev.rlock.ConnectionException;
import dev.rlock.HeldByJobException;
import dev.rlock.Hold;
import dev.rlock.Job;
import dev.rlock.Locks;
import dev.rlock.LostException;
import dev.rlock.NotAcquiredException;
import dev.rlock.RefusedException;
import dev.rlock.Request;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The driver of the Java client: JSON lines in, JSON lines out. */
final class Driver {
    private static final List<String> NEEDS = List.of(
            "read_write", "permits", "many", "job", "again", "acks", "max", "scope", "cluster", "notified",
            "callback", "threads", "surrogates", "tight", "backend", "patience", "wanted", "give_way",
            "sticky", "use_within", "use_cancel");

    private final Map<String, Locks> locks = new ConcurrentHashMap<>();
    private final Map<String, Job> jobs = new ConcurrentHashMap<>();
    /** Of a hold and what was taken by again(), the newest last. */
    private final Map<String, Deque<Hold>> holds = new ConcurrentHashMap<>();
    private final Map<Long, Runnable> cancels = new ConcurrentHashMap<>();
    private final Uses uses = new Uses();
    private final PrintStream out = System.out;

    record Line(Map<String, Object> words) {
        String text(String word) {
            return (String) words.get(word);
        }

        boolean has(String word) {
            return words.get(word) != null;
        }

        boolean is(String word) {
            return Boolean.TRUE.equals(words.get(word));
        }

        long number(String word) {
            return (Long) words.get(word);
        }

        Duration time(String word) {
            return Duration.ofMillis(number(word));
        }
    }

    private interface Work {
        Map<String, Object> run() throws Exception;
    }

    public static void main(String[] none) throws Exception {
        new Driver().read(new BufferedReader(new InputStreamReader(System.in)));
    }

    private void read(BufferedReader in) throws Exception {
        for (String text; (text = in.readLine()) != null; ) {
            var line = new Line(Json.read(text));
            long id = line.number("id");
            if (line.text("do").equals("acquire")) {
                acquire(id, line);
            } else {
                boolean uses = line.text("do").equals("use");
                var thread = new Thread(uses ? () -> this.uses.use(this, id, line) : () -> answer(id, () -> run(line)));
                thread.setDaemon(true);
                cancels.put(id, thread::interrupt);
                thread.start();
            }
        }
        locks.values().forEach(Locks::close);
        System.exit(0);
    }

    private void answer(long id, Work work) {
        try {
            say(Map.of("id", id, "ok", work.run()));
        } catch (Throwable error) {
            failed(id, error);
        }
    }

    void failed(long id, Throwable error) {
        while (error instanceof CompletionException || error instanceof ExecutionException) {
            error = error.getCause();
        }
        var line = new LinkedHashMap<String, Object>();
        line.put("id", id);
        line.put("error", word(error));
        line.put("text", String.valueOf(error.getMessage()));
        if (error instanceof RefusedException refused) {
            line.put("code", refused.code());
        } else if (error instanceof NotAcquiredException taken) {
            line.put("key", taken.key());
            line.put("held_by", taken.heldBy().orElse(null));
        }
        if (word(error).equals("other")) {
            error.printStackTrace();
        }
        say(line);
    }

    private static String word(Throwable error) {
        if (error instanceof NotAcquiredException) {
            return "not_acquired";
        } else if (error instanceof LostException) {
            return "lost";
        } else if (error instanceof DeadlockException) {
            return "deadlock";
        } else if (error instanceof HeldByJobException) {
            return "held_by_job";
        } else if (error instanceof RefusedException) {
            return "refused";
        } else if (error instanceof ConnectionException) {
            return "connection";
        } else if (error instanceof CancellationException || error instanceof InterruptedException) {
            return "cancelled";
        }
        return error instanceof IllegalArgumentException ? "argument" : "other";
    }

    void say(Map<String, Object> line) {
        synchronized (out) {
            out.println(Json.write(line));
            out.flush();
        }
    }

    private void acquire(long id, Line line) {
        CompletableFuture<Hold> future;
        try {
            future = locks.get(line.text("locks")).acquireAsync(request(line));
        } catch (RuntimeException error) {
            failed(id, error);
            return;
        }
        cancels.put(id, () -> future.cancel(true));
        future.whenComplete((hold, error) -> {
            if (error != null) {
                failed(id, error);
            } else {
                keep(line.text("hold"), hold);
                say(Map.of("id", id, "ok", Map.of("token", hold.token(), "owner", hold.owner())));
                watch(line.text("hold"), hold);
            }
        });
    }

    private void keep(String name, Hold hold) {
        holds.put(name, new ArrayDeque<>(List.of(hold)));
    }

    private void watch(String name, Hold hold) {
        hold.lost().thenAccept(lost -> say(Map.of("event", "lost", "hold", name, "reason", lost.reason())));
    }

    private Request request(Line line) {
        Request request;
        if (line.has("keys")) {
            request = Request.of(((List<?>) line.words.get("keys")).stream().map(String.class::cast).toList());
        } else {
            request = Request.of(line.text("key"));
        }
        if (line.has("wait")) {
            request = line.number("wait") == -1 ? request.waitingForEver() : request.waiting(line.time("wait"));
        }
        if (line.has("lease")) {
            request = request.lease(line.time("lease"));
        }
        if (line.has("watchdog")) {
            request = request.watchdog(line.is("watchdog"));
        }
        if (line.has("max")) {
            request = request.max(line.time("max"));
        }
        if (line.has("mode")) {
            request = line.text("mode").equals("read") ? request.read() : request.write();
        }
        if (line.has("limit")) {
            request = request.limit((int) line.number("limit"));
        }
        if (line.has("permits")) {
            request = request.permits((int) line.number("permits"));
        }
        if (line.has("acks")) {
            var time = line.has("acks_ms") ? line.time("acks_ms") : Duration.ofSeconds(1);
            request = request.acks((int) line.number("acks"), time);
        }
        if (line.has("job")) {
            var by = locks.get(line.text("locks"));
            request = request.job(jobs.computeIfAbsent(line.text("locks") + " " + line.text("job"), name -> by.job()));
        }
        return request;
    }

    private Map<String, Object> run(Line line) throws Exception {
        String name = line.text("hold");
        switch (line.text("do")) {
            case "hello":
                return Map.of("client", "java", "needs", NEEDS);
            case "open":
                locks.put(line.text("locks"), Opening.of(line));
                return Map.of();
            case "backend":
                var backend = new LinkedHashMap<String, Object>();
                var found = locks.get(line.text("locks")).backend();
                backend.put("backend", found.map(one -> one.name().toLowerCase(Locale.ROOT)).orElse(null));
                return backend;
            case "callback":
                callback(line);
                return Map.of();
            case "cancel":
                cancels.get(line.number("acquire")).run();
                return Map.of();
            case "close":
                locks.get(line.text("locks")).close();
                return Map.of();
            case "scope":
                return scope(line);
            case "count":
                return count(line);
            case "release":
                var taken = holds.get(name);
                (taken.size() > 1 ? taken.removeLast() : taken.getLast()).release();
                return Map.of();
            case "again":
                holds.get(name).add(holds.get(name).getLast().again());
                return Map.of();
            case "renew":
                holds.get(name).getLast().renew(line.has("lease") ? line.time("lease") : Duration.ofSeconds(10));
                return Map.of();
            case "state":
                var state = new LinkedHashMap<String, Object>();
                var hold = holds.get(name).getFirst();
                state.put("lost", hold.isLost() ? hold.lost().toCompletableFuture().get().reason() : null);
                return state;
            case "give_way":
                return giveWay(holds.get(name).getFirst(), line);
            case "sticky":
                uses.sticky(locks.get(line.text("locks")), line);
                return Map.of();
            case "use_token":
                return uses.token(line);
            case "use_state":
                return uses.state(line);
            case "use_end":
                uses.end(line);
                return Map.of();
            case "use_many":
                return uses.many(line);
            case "use_cancel":
                uses.cancel(line);
                return Map.of();
            case "sticky_close":
                uses.close(line);
                return Map.of();
            case "wanted":
                return Map.of("wanted", isWanted(holds.get(name).getFirst(), line));
            default:
                throw new UnsupportedOperationException(line.text("do"));
        }
    }

    private static Map<String, Object> giveWay(Hold hold, Line line) throws Exception {
        var wait = line.has("wait") ? line.time("wait") : null;
        boolean gave = line.has("least") ? hold.giveWay(wait, line.time("least")) : hold.giveWay(wait);
        return Map.of("gave", gave, "token", hold.token(), "owner", hold.owner());
    }

    private static boolean isWanted(Hold hold, Line line) throws Exception {
        if (!line.has("within")) {
            return hold.isWanted();
        }
        try {
            return hold.wanted().get(line.number("within"), TimeUnit.MILLISECONDS);
        } catch (TimeoutException over) {
            return false;
        }
    }

    /** When the hold is lost the program's own callback does something. */
    private void callback(Line line) {
        String of = line.text("of");
        Callable<Object> does = switch (line.text("does")) {
            case "release" -> () -> {
                holds.get(of).getLast().release();
                return null;
            };
            case "renew" -> () -> {
                holds.get(of).getLast().renew(Duration.ofSeconds(10));
                return null;
            };
            case "acquire" -> () -> {
                keep(of, locks.get(line.text("locks")).acquire(request(line)));
                return null;
            };
            case "close" -> () -> {
                locks.get(line.text("locks")).close();
                return null;
            };
            case "block" -> () -> {
                Thread.sleep(line.number("ms"));
                return null;
            };
            default -> () -> null;
        };
        holds.get(line.text("hold")).getLast().lost().thenAccept(lost -> {
            var said = new LinkedHashMap<String, Object>(Map.of("event", "callback", "hold", line.text("hold")));
            say(Map.of("event", "callback", "hold", line.text("hold"), "begun", line.text("does")));
            try {
                does.call();
                said.put("end", "ok");
            } catch (Throwable error) {
                said.put("end", word(error));
                said.put("text", String.valueOf(error));
            }
            say(said);
            if (line.text("does").equals("throw")) {
                throw new IllegalStateException("the callback failed");
            }
        });
    }

    private Map<String, Object> scope(Line line) throws Exception {
        try (Hold hold = locks.get(line.text("locks")).acquire(request(line))) {
            keep(line.text("hold"), hold);
            watch(line.text("hold"), hold);
            if (line.is("fail")) {
                throw new IllegalStateException("the body's own error");
            }
            try {
                hold.lost().toCompletableFuture().get(line.number("body"), TimeUnit.MILLISECONDS);
                return Map.of("body", "stopped");
            } catch (TimeoutException over) {
                return Map.of("body", "done");
            }
        }
    }

    private Map<String, Object> count(Line line) throws Exception {
        var file = Path.of(line.text("file"));
        long end = System.nanoTime() + line.time("for").toNanos();
        long done = 0;
        for (; System.nanoTime() < end; done++) {
            if (!line.has("key")) {
                uses.count(line, file);
                continue;
            }
            try (Hold hold = locks.get(line.text("locks")).acquire(request(line))) {
                oneMore(file);
            }
        }
        return Map.of("done", done);
    }

    static void oneMore(Path file) throws Exception {
        String text = Files.exists(file) ? Files.readString(file).strip() : "";
        Files.writeString(file, Long.toString(text.isEmpty() ? 1 : Long.parseLong(text) + 1));
    }
}

import dev.rlock.Locks;
import dev.rlock.Sticky;
import dev.rlock.Use;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;

/** Sticky locks, and their uses. The body of a use does what it is asked for until it is told to end. */
final class Uses {
    private final Map<String, Sticky> stickies = new ConcurrentHashMap<>();
    private final Map<String, Using> uses = new ConcurrentHashMap<>();

    /** What a body is asked for. */
    interface Ask {
        /** Whether it goes on. */
        boolean run(Use use) throws Exception;
    }

    private static final class Using {
        final Thread thread = Thread.currentThread();
        final BlockingQueue<Ask> asks = new LinkedBlockingQueue<>();
        final CompletableFuture<Void> end = new CompletableFuture<>();
        volatile Use use;
    }

    void sticky(Locks locks, Driver.Line line) {
        stickies.put(line.text("sticky"), locks.sticky(
                line.text("key"),
                line.has("idle") ? line.time("idle") : Duration.ofSeconds(1),
                line.has("wait") ? line.time("wait") : Duration.ofSeconds(30),
                line.has("lease") ? line.time("lease") : Duration.ofSeconds(10)));
    }

    private Sticky of(Driver.Line line) {
        return stickies.get(line.text("sticky"));
    }

    /** The answer comes when it has begun; this thread is in it until its end. */
    void use(Driver driver, long id, Driver.Line line) {
        if (line.has("within")) {
            uses.get(line.text("within")).asks.add(outer -> {
                begin(driver, id, line);
                return true;
            });
        } else {
            begin(driver, id, line);
        }
    }

    private void begin(Driver driver, long id, Driver.Line line) {
        var using = new Using();
        uses.put(line.text("use"), using);
        boolean begun = false;
        try (Use use = of(line).use()) {
            using.use = use;
            var answer = new LinkedHashMap<String, Object>();
            answer.put("owner", use.owner());
            if (line.is("token")) {
                answer.put("token", use.token());
            }
            begun = true;
            driver.say(Map.of("id", id, "ok", answer));
            while (using.asks.take().run(use)) {
                // Until it is told.
            }
        } catch (Throwable error) {
            if (begun) {
                using.end.completeExceptionally(error);
            } else {
                driver.failed(id, error);
            }
        }
        using.end.complete(null);
    }

    void cancel(Driver.Line line) {
        uses.get(line.text("use")).thread.interrupt();
    }

    Map<String, Object> token(Driver.Line line) throws Exception {
        var token = new CompletableFuture<Long>();
        uses.get(line.text("use")).asks.add(use -> {
            try {
                token.complete(use.token());
            } catch (Throwable error) {
                token.completeExceptionally(error);
            }
            return true;
        });
        return Map.of("token", token.get());
    }

    Map<String, Object> state(Driver.Line line) throws Exception {
        Use use = uses.get(line.text("use")).use;
        var state = new LinkedHashMap<String, Object>();
        state.put("lost", use.isLost() ? use.lost().toCompletableFuture().get().reason() : null);
        return state;
    }

    void end(Driver.Line line) throws Exception {
        Using using = uses.get(line.text("use"));
        using.asks.add(use -> {
            if (line.is("fail")) {
                throw new IllegalStateException("the body's own error");
            }
            return false;
        });
        using.end.get();
    }

    Map<String, Object> many(Driver.Line line) throws Exception {
        var answer = new LinkedHashMap<String, Object>();
        boolean rising = true;
        long last = 0;
        for (long n = line.number("times"); n > 0; n--) {
            try (Use use = of(line).use()) {
                if (line.is("token")) {
                    rising &= use.token() > last;
                    last = use.token();
                }
            }
        }
        answer.put("done", line.number("times"));
        if (line.is("token")) {
            answer.put("rising", rising);
        }
        return answer;
    }

    void close(Driver.Line line) {
        of(line).close();
    }

    /** One more in the file. */
    void count(Driver.Line line, Path file) throws Exception {
        try (Use use = of(line).use()) {
            Driver.oneMore(file);
        }
    }
}

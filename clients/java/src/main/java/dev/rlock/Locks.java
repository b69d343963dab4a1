package dev.rlock;

import io.lettuce.core.RedisClient;
import io.lettuce.core.cluster.RedisClusterClient;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Locks of one server, or of one cluster. A program makes one for each process:
 *
 * <pre>{@code
 * Locks locks = Locks.over(redisClient);
 * try (Hold hold = locks.acquire("jobs", Duration.ofSeconds(10))) {
 *     // alone here, as long as !hold.isLost()
 * }
 * }</pre>
 *
 * <p>It goes by the rlock module, or by the function library on a server that has none: {@link #backend}.
 *
 * <p>All its waits and holds run over one connection of its own to each server, which is opened
 * at the first request. Any thread may use it, and any number of them, also those that run
 * callbacks.
 */
public final class Locks implements AutoCloseable {
    static final String VERSION = "0.9.0";

    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final Own own;
    private final ScheduledThreadPoolExecutor timer;
    private final Router router;
    private final long timeout;
    private final Asks asks;
    private final Threads threads;

    private interface Routing {
        Router over(Own own, ScheduledThreadPoolExecutor timer, long timeout);
    }

    private interface Owning {
        Own of(long timeout, Known known);
    }

    private Locks(Duration timeout, Backend least, Duration patience, Owning own, Routing routing) {
        Room.take();
        // Begun here, and not by the first call, which may come deep in a recursion.
        Owner.fresh();
        Calls.areVirtual();
        CallbackExecutor.POOL.start();
        this.timeout = Millis.of(timeout, "timeout");
        long silent = patience == null ? 0 : Millis.of(patience, "patience");
        this.own = own.of(this.timeout, new Known(least == Backend.MODULE, silent));
        timer = new ScheduledThreadPoolExecutor(1, run -> CallbackExecutor.daemon("rlock", run));
        timer.setRemoveOnCancelPolicy(true);
        timer.setKeepAliveTime(1, TimeUnit.MINUTES);
        timer.allowCoreThreadTimeOut(true);
        // Once it is closed there is nothing to do any more.
        timer.setRejectedExecutionHandler(new ThreadPoolExecutor.DiscardPolicy());
        router = routing.over(this.own, timer, this.timeout);
        asks = new Asks(router, timer, this.timeout);
        threads = new Threads(asks);
    }

    /**
     * Locks of one server, with a timeout of 5 s.
     *
     * @param client whose address, TLS and credentials these locks take, and nothing else: not its
     *     time-outs, and not its threads. It stays the caller's, to be shut down after they are closed
     * @return the locks
     */
    public static Locks over(RedisClient client) {
        return over(client, Duration.ofSeconds(5));
    }

    /**
     * Locks of one server.
     *
     * @param client whose address, TLS and credentials these locks take, and nothing else: not its
     *     time-outs, and not its threads. It stays the caller's, to be shut down after they are closed
     * @param timeout for how long to connect, and for how long a request that does not wait asks again
     *     while there is no connection
     * @return the locks
     */
    public static Locks over(RedisClient client, Duration timeout) {
        return over(client, timeout, Backend.SCRIPT);
    }

    /**
     * Locks of one server with the module alone, or with any backend.
     *
     * @param client whose address, TLS and credentials these locks take, and nothing else: not its
     *     time-outs, and not its threads. It stays the caller's, to be shut down after they are closed
     * @param timeout for how long to connect, and for how long a request that does not wait asks again
     *     while there is no connection
     * @param least {@link Backend#MODULE}: every request is refused by a server without the module.
     *     The others: any backend will do
     * @return the locks
     */
    public static Locks over(RedisClient client, Duration timeout, Backend least) {
        return over(client, timeout, least, PATIENCE);
    }

    /**
     * Locks of one server, with a patience of one's own.
     *
     * @param client whose address, TLS and credentials these locks take, and nothing else: not its
     *     time-outs, and not its threads. It stays the caller's, to be shut down after they are closed
     * @param timeout for how long to connect, and for how long a request that does not wait asks again
     *     while there is no connection
     * @param least {@link Backend#MODULE}: every request is refused by a server without the module.
     *     The others: any backend will do
     * @param patience for how long this process may be silent, 30 s otherwise: if it is stopped for longer, or has
     *     vanished while its connection stands, it loses what the server renews and somebody waits for, with the reason
     *     {@code silent}. While it has a hold with a longer lease it is that lease. Null: it may be silent for
     *     ever
     * @return the locks
     */
    public static Locks over(RedisClient client, Duration timeout, Backend least, Duration patience) {
        Objects.requireNonNull(client);
        Objects.requireNonNull(least);
        return new Locks(
                timeout,
                least,
                patience,
                (millis, known) -> Own.of(client, millis, known),
                (own, timer, millis) -> new OneServer(own.connector(), timer, millis));
    }

    /**
     * Locks of a cluster, with a timeout of 5 s.
     *
     * @param client whose addresses, TLS and credentials these locks take, and nothing else: not its
     *     time-outs, and not its threads. It stays the caller's, to be shut down after they are closed
     * @return the locks
     */
    public static Locks over(RedisClusterClient client) {
        return over(client, Duration.ofSeconds(5));
    }

    /**
     * Locks of a cluster.
     *
     * @param client whose addresses, TLS and credentials these locks take, and nothing else: not its
     *     time-outs, and not its threads. It stays the caller's, to be shut down after they are closed
     * @param timeout for how long to connect, and for how long a request that does not wait asks again
     *     while there is no connection
     * @return the locks
     */
    public static Locks over(RedisClusterClient client, Duration timeout) {
        return over(client, timeout, Backend.SCRIPT);
    }

    /**
     * Locks of a cluster with the module alone, or with any backend.
     *
     * @param client whose addresses, TLS and credentials these locks take, and nothing else: not its
     *     time-outs, and not its threads. It stays the caller's, to be shut down after they are closed
     * @param timeout for how long to connect, and for how long a request that does not wait asks again
     *     while there is no connection
     * @param least {@link Backend#MODULE}: every request is refused by a server without the module.
     *     The others: any backend will do
     * @return the locks
     */
    public static Locks over(RedisClusterClient client, Duration timeout, Backend least) {
        return over(client, timeout, least, PATIENCE);
    }

    /**
     * Locks of a cluster, with a patience of one's own.
     *
     * @param client whose addresses, TLS and credentials these locks take, and nothing else: not its
     *     time-outs, and not its threads. It stays the caller's, to be shut down after they are closed
     * @param timeout for how long to connect, and for how long a request that does not wait asks again
     *     while there is no connection
     * @param least {@link Backend#MODULE}: every request is refused by a server without the module.
     *     The others: any backend will do
     * @param patience for how long this process may be silent, 30 s otherwise, as with
     *     {@linkplain #over(RedisClient, Duration, Backend, Duration) one server}
     * @return the locks
     */
    public static Locks over(RedisClusterClient client, Duration timeout, Backend least, Duration patience) {
        Objects.requireNonNull(client);
        Objects.requireNonNull(least);
        return new Locks(timeout, least, patience, (millis, known) -> Own.of(client, millis, known), Cluster::new);
    }

    /**
     * Acquires a lock, waiting for it.
     *
     * @param key its name
     * @param wait for at most so long; zero: asks once
     * @return the hold, to be released: use it in a try-with-resources statement
     * @throws NotAcquiredException if somebody else had it for all that time
     * @throws DeadlockException if the wait would never have ended
     * @throws RefusedException if the server refuses
     * @throws ConnectionException if there is no connection within the time
     * @throws InterruptedException if the thread was interrupted; the wait is over in the server too
     */
    public Hold acquire(String key, Duration wait) throws InterruptedException {
        return acquire(Request.of(key).waiting(wait));
    }

    /**
     * Acquires what the request says.
     *
     * @param request which lock, and how
     * @return the hold, to be released: use it in a try-with-resources statement
     * @throws NotAcquiredException if somebody else had it for the whole wait
     * @throws DeadlockException if the wait would never have ended
     * @throws HeldByJobException if the request's job holds the key or waits for it
     * @throws RefusedException if the server refuses
     * @throws LostException if it was lost before it could be given to the program
     * @throws ConnectionException if there is no connection within the time
     * @throws InterruptedException if the thread was interrupted; the wait is over in the server too
     */
    public Hold acquire(Request request) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        return asks.await(asks.ask(request, request.job, new Job.Place()));
    }

    /**
     * Acquires a lock if nobody has it.
     *
     * @param key its name
     * @return the hold, or nothing if somebody else has it
     * @throws RefusedException if the server refuses
     * @throws ConnectionException if there is no connection within the time
     * @throws InterruptedException if the thread was interrupted
     */
    public Optional<Hold> tryAcquire(String key) throws InterruptedException {
        return tryAcquire(Request.of(key));
    }

    /**
     * Acquires what the request says, with nothing where {@link #acquire(Request)} throws
     * {@link NotAcquiredException}.
     *
     * @param request which lock, and how
     * @return the hold, or nothing if somebody else had it for the whole wait
     * @throws RlockException what {@link #acquire(Request)} throws besides
     * @throws InterruptedException if the thread was interrupted; the wait is over in the server too
     */
    public Optional<Hold> tryAcquire(Request request) throws InterruptedException {
        try {
            return Optional.of(acquire(request));
        } catch (NotAcquiredException error) {
            return Optional.empty();
        }
    }

    /**
     * Acquires what the request says, without blocking. If the future is completed otherwise, be it
     * cancelled or by {@link CompletableFuture#orTimeout} or {@link CompletableFuture#complete}, the
     * wait is over in the server too, and what it may have granted is released.
     *
     * @param request which lock, and how
     * @return the hold; fails as {@link #acquire(Request)} does. What depends on it may block: no
     *     other callback, and no future, waits until it is done
     */
    public CompletableFuture<Hold> acquireAsync(Request request) {
        Room.take();
        return Calls.call(() -> asks.future(request));
    }

    /**
     * What the server has for these locks, as it was found last.
     *
     * @return of the nodes of a cluster that of any; nothing before the first connection
     */
    public Optional<Backend> backend() {
        return Optional.ofNullable(own.known.backend());
    }

    /**
     * {@link #sticky(String, Duration, Duration, Duration)} that stays for 1 s while nobody uses it, waits for 30 s, and has a lease
     * of 10 s.
     *
     * @param key its name
     * @return a new one
     */
    public Sticky sticky(String key) {
        return sticky(key, Duration.ofSeconds(1), Duration.ofSeconds(30), Duration.ofSeconds(10));
    }

    /**
     * A lock that stays with this process between its uses: for places that take the same lock again and again, and cannot hold it
     * around a loop. A program makes one, and keeps it. It is one plain lock. A use of it costs no word to the server as long as the
     * lock is here and nobody else wants it. Others see it held as long as this process has it, also while nobody uses it. It
     * goes back when somebody waits for it, when it was not used for a while, and every second for who only tries.
     *
     * @param key its name
     * @param idle it is released when nobody has used it for so long, at most 1 s
     * @param wait how long a use waits for the lock, and for other uses of this process; zero: only for the server's answer
     * @param lease as that of a {@linkplain Request#lease request}
     * @return a new one
     */
    public Sticky sticky(String key, Duration idle, Duration wait, Duration lease) {
        long still = Millis.of(idle, "idle");
        if (still > Stay.MOST) {
            throw new IllegalArgumentException("idle is at most 1 s");
        }
        long most = wait.isZero() ? 0 : Millis.of(wait, "wait");
        Request request = Request.of(key).waitingForEver().lease(lease);
        return new Sticky(new Stay(asks, router, timer, timeout, request, still, most));
    }

    /**
     * A job: work that takes several locks. Its locks share one owner, so that the server sees when
     * two jobs wait for each other.
     *
     * @return a new one
     */
    public Job job() {
        return new Job();
    }

    /**
     * A plain lock in the form of java.util.concurrent: held by the thread, nesting by itself.
     *
     * @param key its name
     * @return the lock; it may be asked for again and again, all are the same
     */
    public ThreadLock lock(String key) {
        return lock(Request.of(key));
    }

    /**
     * A lock in the form of java.util.concurrent with the lease, the mode, the acks and so on of a
     * request. How long to wait is said by the lock's own methods.
     *
     * @param request for one key, without a job
     * @return the lock
     * @throws IllegalArgumentException if it is for several keys, or has a job
     */
    public ThreadLock lock(Request request) {
        return new ThreadLock(threads, request);
    }

    /**
     * A lock to read and to write in the form of java.util.concurrent.
     *
     * @param key its name
     * @return both locks
     */
    public ThreadReadWriteLock readWriteLock(String key) {
        return new ThreadReadWriteLock(lock(Request.of(key).read()), lock(Request.of(key).write()));
    }

    /**
     * Releases every hold, ends every wait, and closes the connections. Holds are lost with the
     * reason {@code closed}; further requests fail. What is to be held {@linkplain Hold#atLeast at
     * least} for a time stays held for the rest of it.
     */
    @Override
    public void close() {
        Room.take();
        if (!asks.close()) {
            return;
        }
        try {
            Calls.run(asks::endAll);
        } finally {
            new Closing(router, timer, timeout, this::disconnected).run();
        }
    }

    private void disconnected() {
        own.close();
        timer.shutdownNow();
        asks.endLate();
    }
}

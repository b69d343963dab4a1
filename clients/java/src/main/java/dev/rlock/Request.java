package dev.rlock;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;

/**
 * What is asked of a lock. A request is a value: each method gives a new one, and one may be used
 * again and again.
 *
 * <pre>{@code
 * Request.of("jobs").waiting(Duration.ofSeconds(10))
 * Request.of("report").read().waiting(Duration.ofSeconds(10))
 * Request.of("gpu").limit(4).permits(2)
 * Request.of("from", "to").job(job)
 * }</pre>
 *
 * <p>As it begins, a request does not wait, takes the plain lock, and has a lease of 10 s that the
 * server renews as long as the connection is open.
 */
public final class Request {
    /** Of all keys: a server may be set to close a connection that sends 1 MB. */
    private static final int MOST_BYTES = 1 << 19;

    static final long FOR_EVER = -1;

    final List<String> keys;
    long wait;
    long lease = 10_000;
    boolean watchdog = true;
    long max;
    Mode mode = Mode.PLAIN;
    int limit;
    int permits = 1;
    Job job;
    int acks;
    long acksTime = 1_000;

    private Request(List<String> keys) {
        this.keys = keys;
    }

    /**
     * One lock, or several at once: all of them or none. In a cluster several keys must lie in one
     * slot.
     *
     * @param key its name
     * @param more further locks
     * @return the request
     * @throws IllegalArgumentException if a name is empty, given twice, or no text: half of a pair
     *     of surrogates, which is sent as a question mark, as any other such half
     */
    public static Request of(String key, String... more) {
        var keys = new ArrayList<String>();
        keys.add(key);
        keys.addAll(Arrays.asList(more));
        return of(keys);
    }

    /**
     * One lock, or several at once: all of them or none. In a cluster several keys must lie in one
     * slot.
     *
     * @param keys their names, 1 to 1,024
     * @return the request
     * @throws IllegalArgumentException if there is none, or a name is empty, given twice, or no text,
     *     or they have more than 512 KB together
     */
    public static Request of(Collection<String> keys) {
        long bytes = 0;
        for (String key : keys) {
            if (Objects.requireNonNull(key, "a key must not be null").isEmpty()) {
                throw new IllegalArgumentException("a key must not be empty");
            }
            if (!StandardCharsets.UTF_8.newEncoder().canEncode(key)) {
                throw new IllegalArgumentException("a key must be text, without halves of surrogate pairs");
            }
            bytes += key.getBytes(StandardCharsets.UTF_8).length;
        }
        if (bytes > MOST_BYTES) {
            throw new IllegalArgumentException("the keys of a request are at most " + MOST_BYTES + " bytes together");
        }
        if (keys.isEmpty() || keys.size() > 1024 || new HashSet<>(keys).size() < keys.size()) {
            throw new IllegalArgumentException("1 to 1,024 different keys");
        }
        return new Request(List.copyOf(keys));
    }

    private Request copy() {
        var copy = new Request(keys);
        copy.wait = wait;
        copy.lease = lease;
        copy.watchdog = watchdog;
        copy.max = max;
        copy.mode = mode;
        copy.limit = limit;
        copy.permits = permits;
        copy.job = job;
        copy.acks = acks;
        copy.acksTime = acksTime;
        return copy;
    }

    /**
     * Waits for at most so long, in order of arrival.
     *
     * @param wait zero: asks once, and does not wait
     * @return the request
     */
    public Request waiting(Duration wait) {
        var copy = copy();
        copy.wait = wait.isZero() ? 0 : Millis.of(wait, "wait");
        return copy;
    }

    /**
     * Waits until it has the lock.
     *
     * @return the request
     */
    public Request waitingForEver() {
        var copy = copy();
        copy.wait = FOR_EVER;
        return copy;
    }

    /**
     * How long the lock stays held when nobody renews it any more: when this process or its
     * machine is gone. 10 s, as it begins. It is also the time after which a server that is silent
     * counts as lost, so it should outlast the pauses of this process.
     *
     * @param lease at least 1 ms
     * @return the request
     */
    public Request lease(Duration lease) {
        var copy = copy();
        copy.lease = Millis.of(lease, "lease");
        return copy;
    }

    /**
     * Whether the server renews the lease as long as the connection is open. It does, as it
     * begins; the hold is lost when the connection closes. Without it the hold outlives its
     * connection, is lost when its lease is over, and nobody renews it but {@link Hold#renew}. If
     * it is taken away while there is no connection, the next one finds that out.
     * Take it so behind a TCP proxy that keeps connections open for clients that are gone.
     *
     * <p>Where the server has no module this process renews what the server would, and such a hold
     * outlives its connection too.
     *
     * @param watchdog whether it is
     * @return the request
     */
    public Request watchdog(boolean watchdog) {
        var copy = copy();
        copy.watchdog = watchdog;
        return copy;
    }

    /**
     * Bounds a hold that the server renews: after so long it is released, and lost with the
     * reason {@code max}.
     *
     * @param max from when the hold was given to the program
     * @return the request
     */
    public Request max(Duration max) {
        var copy = copy();
        copy.max = Millis.of(max, "max");
        return copy;
    }

    private Request mode(Mode mode) {
        if (this.mode != Mode.PLAIN) {
            throw new IllegalArgumentException("one of read, write and limit");
        }
        if (keys.size() > 1) {
            throw new IllegalArgumentException("several keys at once are plain locks");
        }
        var copy = copy();
        copy.mode = mode;
        return copy;
    }

    /**
     * To read, beside others who do. A name is used for a plain lock, for reading and writing, or
     * for permits, and not for two of these at a time.
     *
     * @return the request
     */
    public Request read() {
        return mode(Mode.READ);
    }

    /**
     * To write, alone.
     *
     * @return the request
     */
    public Request write() {
        return mode(Mode.WRITE);
    }

    /**
     * A permit of this lock, of which at most so many are out at a time. All who use the name say
     * the same limit.
     *
     * @param limit 1 to 1,000,000
     * @return the request
     */
    public Request limit(int limit) {
        if (limit < 1 || limit > 1_000_000) {
            throw new IllegalArgumentException("a limit is 1 to 1,000,000");
        }
        var copy = mode(Mode.PERMITS);
        copy.limit = limit;
        return copy;
    }

    /**
     * So many permits, all or none; 1, as it begins. After {@link #limit}.
     *
     * @param permits 1 to the limit
     * @return the request
     */
    public Request permits(int permits) {
        if (mode != Mode.PERMITS) {
            throw new IllegalArgumentException("permits need a limit, set before");
        }
        if (permits < 1 || permits > limit) {
            throw new IllegalArgumentException("permits are 1 to the limit");
        }
        var copy = copy();
        copy.permits = permits;
        return copy;
    }

    /**
     * The job that it belongs to.
     *
     * @param job of the same {@link Locks}
     * @return the request
     */
    public Request job(Job job) {
        var copy = copy();
        copy.job = Objects.requireNonNull(job);
        return copy;
    }

    /**
     * Gives the hold to the program when so many replicas have it, within 1 s; else it is released,
     * and the request fails with the code {@code NOREPLICAS}.
     *
     * @param replicas how many
     * @return the request
     */
    public Request acks(int replicas) {
        return acks(replicas, Duration.ofSeconds(1));
    }

    /**
     * Gives the hold to the program when so many replicas have it; else it is released, and the
     * request fails with the code {@code NOREPLICAS}.
     *
     * @param replicas how many
     * @param time for which to wait for them
     * @return the request
     */
    public Request acks(int replicas, Duration time) {
        if (replicas < 0) {
            throw new IllegalArgumentException("acks must not be negative");
        }
        var copy = copy();
        copy.acks = replicas;
        copy.acksTime = Millis.of(time, "the time for acks");
        return copy;
    }

    String key() {
        return keys.get(0);
    }
}

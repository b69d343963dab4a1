package dev.rlock;

import java.util.ArrayList;
import java.util.List;

/**
 * A call of a function of the library: what a command of the module says too.
 *
 * @param name {@code acquire} and so on
 * @param target whose it is
 * @param options behind the owner
 * @param millis for which a request waits; 0: it does not wait
 * @param tag by which the end of the wait is notified
 */
record Call(String name, Target target, List<Object> options, long millis, long tag) {
    /** Of longer names nothing is declared: a server may be set to close a connection that sends 1 MB. */
    private static final int MOST = 1 << 16;

    private static final List<String> QUEUE = List.of("rlock1_queue", "rlock1_places");

    /** With what concerns its place in the queue. */
    Call with(Object... more) {
        var words = new ArrayList<>(options);
        words.addAll(List.of(more));
        return new Call(name, target, words, millis, tag);
    }

    boolean isAcquire() {
        return name.endsWith("acquire");
    }

    String function() {
        return "rlock1_" + name;
    }

    List<Object> words() {
        var words = new ArrayList<Object>();
        words.add(target.owner());
        words.addAll(options);
        return words;
    }

    /** The locks, and the keys beside them that it may need: some servers let it at no others. */
    List<String> keys() {
        var locks = name.equals("cancel") ? List.of(target.request().key()) : target.request().keys;
        var keys = new ArrayList<>(locks);
        if (locks.stream().mapToInt(String::length).sum() > MOST) {
            return keys;
        }
        for (String lock : locks) {
            if (isNear(lock)) {
                if (isAcquire() || options.contains("TOKEN")) {
                    keys.add(beside("redisson_lock_token", lock));
                }
                if (!name.endsWith("renew")) {
                    QUEUE.forEach(prefix -> keys.add(beside(prefix, lock)));
                }
            }
        }
        return keys;
    }

    /** As Redisson names what belongs to a lock. */
    static String beside(String prefix, String lock) {
        return prefix + ":" + (lock.contains("{") ? lock : "{" + lock + "}");
    }

    /** Whether what belongs to it lies in its slot. */
    private static boolean isNear(String lock) {
        int open = lock.indexOf('{');
        return open < 0 ? lock.indexOf('}') < 0 : lock.indexOf('}', open) > open + 1;
    }
}

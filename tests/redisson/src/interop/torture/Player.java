package interop.torture;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** One thread, which is an owner of its own to Redisson. */
final class Player extends Thread {
    private final RedissonClient redisson;
    private final BlockingQueue<String[]> requests = new LinkedBlockingQueue<>();
    private RLock held;

    Player(String name, RedissonClient redisson) {
        super(name);
        this.redisson = redisson;
        setDaemon(true);
        start();
    }

    void ask(String[] words) {
        requests.add(words);
    }

    @Override
    public void run() {
        try {
            while (true) {
                String[] words = requests.take();
                answer(words[1].equals("unlock") ? unlock() : lock(words));
            }
        } catch (InterruptedException e) {
            interrupt();
        }
    }

    /** {@code PLAYER VERB KEY WAIT LEASE}; with a lease of -1 Redisson's watchdog keeps it. */
    private String lock(String[] words) throws InterruptedException {
        String key = words[2];
        long wait = Long.parseLong(words[3]);
        long lease = Long.parseLong(words[4]);
        try {
            if (words[1].equals("fenced")) {
                RFencedLock lock = redisson.getFencedLock(key);
                held = lock;
                Long token = lock.tryLockAndGetToken(wait, lease, TimeUnit.MILLISECONDS);
                return token == null ? "not_acquired" : "ok " + token;
            }
            held = lockOf(words[1], key);
            boolean got = held.tryLock(wait, lease, TimeUnit.MILLISECONDS);
            return got ? "ok" : "not_acquired";
        } catch (RuntimeException e) {
            return "failed " + oneLine(e) + leave();
        }
    }

    private RLock lockOf(String verb, String key) {
        return switch (verb) {
            case "lock" -> redisson.getLock(key);
            case "read" -> redisson.getReadWriteLock(key).readLock();
            case "write" -> redisson.getReadWriteLock(key).writeLock();
            default -> throw new IllegalArgumentException("there is no verb " + verb);
        };
    }

    private String unlock() {
        try {
            held.unlock();
            return "ok" + leave();
        } catch (IllegalMonitorStateException e) {
            return "lost " + oneLine(e);
        } catch (RuntimeException e) {
            return "failed " + oneLine(e);
        }
    }

    /**
     * Redisson sends again what had no reply, so a lock may be held once more than it was asked
     * for, or though the request has failed. Nothing, or why it may still be held.
     */
    private String leave() {
        try {
            while (held.isHeldByCurrentThread()) {
                held.unlock();
            }
            return "";
        } catch (RuntimeException e) {
            return " and then " + oneLine(e);
        }
    }

    private void answer(String text) {
        synchronized (System.out) {
            System.out.println(getName() + " " + text);
            System.out.flush();
        }
    }

    private static String oneLine(Exception e) {
        return e.toString().replaceAll("\\s+", " ");
    }
}

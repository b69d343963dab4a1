package dev.rlock;

import static dev.rlock.ThreadLockTest.inThread;
import static dev.rlock.ThreadLockTest.later;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** The cases of Redisson's tests of its RReadWriteLock, as far as they go through java.util.concurrent. */
class ThreadReadWriteLockTest extends WithServer {
    private ThreadLock read() {
        return locks.readWriteLock(key).readLock();
    }

    private ThreadLock write() {
        return locks.readWriteLock(key).writeLock();
    }

    private boolean otherTries(ThreadLock lock) throws Exception {
        return inThread(() -> {
            boolean got = lock.tryLock();
            if (got) {
                lock.unlock();
            }
            return got;
        });
    }

    @Test
    void readersShare() throws Exception {
        read().lock();
        assertTrue(otherTries(read()));
        assertFalse(otherTries(write()));
        assertFalse(inThread(() -> read().isHeldByCurrentThread()));
        read().unlock();
        assertTrue(otherTries(write()));
    }

    @Test
    void aWriterIsAlone() throws Exception {
        write().lock();
        assertTrue(write().tryLock());
        assertFalse(otherTries(read()));
        assertFalse(otherTries(write()));
        write().unlock();
        assertFalse(otherTries(read()));
        assertTrue(write().isHeldByCurrentThread());
        write().unlock();
        assertTrue(otherTries(write()));
    }

    @Test
    void aWriterMayReadAndReadsOn() throws Exception {
        write().lock();
        assertTrue(read().tryLock(10, TimeUnit.SECONDS));
        assertFalse(otherTries(read()));
        write().unlock();
        assertTrue(otherTries(read()));
        assertFalse(otherTries(write()));
        read().unlock();
        assertTrue(server.isFree(key));
    }

    @Test
    void readingInsideWritingLeavesTheWriting() throws Exception {
        write().lock();
        read().lock();
        read().unlock();
        assertFalse(otherTries(read()));
        write().unlock();
        assertTrue(server.isFree(key));
    }

    /** Otherwise than with Redisson, whose lock refuses it. */
    @Test
    void aReaderWhoIsAloneMayWrite() throws Exception {
        read().lock();
        assertTrue(write().tryLock());
        assertFalse(otherTries(read()));
        write().unlock();
        assertTrue(otherTries(read()));
        read().unlock();
    }

    @Test
    void twoReadersWhoWouldWriteGetADeadlock() throws Exception {
        var reads = new CountDownLatch(1);
        read().lock();
        var other = later(() -> {
            read().lock();
            reads.countDown();
            try {
                write().lock();
                write().unlock();
                return true;
            } finally {
                read().unlock();
            }
        });
        assertTrue(reads.await(20, TimeUnit.SECONDS));
        server.awaitWaiters(key, 1);
        assertThrows(DeadlockException.class, () -> write().lock());
        read().unlock();
        assertTrue(other.get(20, TimeUnit.SECONDS));
    }

    @Test
    void countsItsHolds() {
        for (ThreadLock lock : new ThreadLock[] {read(), write()}) {
            lock.lock();
            lock.lock();
            assertEquals(2, lock.getHoldCount());
            lock.unlock();
            lock.unlock();
            assertEquals(0, lock.getHoldCount());
            assertThrows(IllegalMonitorStateException.class, lock::unlock);
        }
    }

    @Test
    void manyReadersComeInTogetherWhenTheWriterLeaves() throws Exception {
        write().lock();
        int many = 20;
        var inside = new CountDownLatch(many);
        var all = new ArrayList<CompletableFuture<Boolean>>();
        for (int i = 0; i < many; i++) {
            all.add(later(() -> {
                read().lock();
                inside.countDown();
                boolean together = inside.await(20, TimeUnit.SECONDS);
                read().unlock();
                return together;
            }));
        }
        server.awaitWaiters(key, many);
        write().unlock();
        for (var one : all) {
            assertTrue(one.get(30, TimeUnit.SECONDS));
        }
    }

    @Test
    void aReadersLeaseEndsAlone() throws Exception {
        var lease = Request.of(key).read().watchdog(false);
        var shorter = locks.lock(lease.lease(Duration.ofSeconds(4)));
        shorter.lock();
        var done = new CountDownLatch(1);
        var other = later(() -> {
            read().lock();
            done.await();
            read().unlock();
            return true;
        });
        Server.await("the end of the shorter", () -> server.holders(key) == 1 && !shorter.isHeldAndNotLost());
        assertFalse(otherTries(write()));
        done.countDown();
        assertTrue(other.get(20, TimeUnit.SECONDS));
        assertThrows(IllegalMonitorStateException.class, shorter::unlock);
        assertTrue(otherTries(write()));
    }

    @Test
    void aWritersLeaseEnds() throws Exception {
        var write = locks.lock(Request.of(key).write().watchdog(false).lease(Duration.ofSeconds(4)));
        write.lock();
        assertTrue(inThread(() -> write().tryLock(20, TimeUnit.SECONDS)));
        assertThrows(IllegalMonitorStateException.class, write::unlock);
    }

    @Test
    void aReadLockOfAClosedProcessIsFree() throws Exception {
        var client = Server.client(server.port);
        var theirs = Locks.over(client);
        theirs.readWriteLock(key).readLock().lock();
        read().lock();
        theirs.close();
        client.shutdown(0, 0, TimeUnit.SECONDS);
        read().unlock();
        assertTrue(write().tryLock(20, TimeUnit.SECONDS));
        write().unlock();
    }

    @Test
    void readersAndWritersInManyThreadsCountRightly() throws Exception {
        int threads = 8;
        int times = 50;
        var readers = new AtomicInteger();
        var writers = new AtomicInteger();
        var pool = Executors.newFixedThreadPool(threads);
        var ends = java.util.stream.IntStream.range(0, threads).mapToObj(thread -> pool.submit(() -> {
            for (int i = 0; i < times; i++) {
                if ((i + thread) % 3 == 0) {
                    write().lock();
                    assertEquals(1, writers.incrementAndGet());
                    assertEquals(0, readers.get());
                    writers.decrementAndGet();
                    write().unlock();
                } else {
                    read().lock();
                    readers.incrementAndGet();
                    assertEquals(0, writers.get());
                    readers.decrementAndGet();
                    read().unlock();
                }
            }
            return null;
        })).toList();
        for (var end : ends) {
            end.get(50, TimeUnit.SECONDS);
        }
        pool.shutdown();
        assertTrue(server.isFree(key));
    }
}

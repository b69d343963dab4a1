package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.rlock.spring.RlockLockRegistry;
import java.time.Duration;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.springframework.integration.leader.Context;
import org.springframework.integration.leader.DefaultCandidate;
import org.springframework.integration.support.leader.LockRegistryLeaderInitiator;

class SpringTest extends WithServer {
    private RlockLockRegistry registry(Locks by) {
        return new RlockLockRegistry(by, "app:");
    }

    @Test
    void executesLocked() throws Exception {
        var registry = registry(locks);
        int result = registry.<Integer, Exception>executeLocked(key, () -> {
            assertFalse(server.isFree("app:" + key));
            registry.<Exception>executeLocked(key, () -> assertTrue(registry.obtain(key).isHeldAndNotLost()));
            return 7;
        });
        assertEquals(7, result);
        assertTrue(server.isFree("app:" + key));
        take("app:" + key);
        assertThrows(TimeoutException.class, () ->
                registry.<Exception>executeLocked(key, Duration.ofMillis(100), () -> {
                    throw new AssertionError();
                }));
    }

    /** Which takes the lock, takes it again and again to see whether it still has it, and goes on after a loss. */
    @Test
    void electsALeaderAndAnotherAfterALoss() throws Exception {
        var client = Server.client(server.port);
        var others = Locks.over(client);
        var granted = new LinkedBlockingQueue<String>();
        var revoked = new LinkedBlockingQueue<String>();
        var one = initiator(locks, "one", granted, revoked);
        var two = initiator(others, "two", granted, revoked);
        one.start();
        two.start();
        try {
            String first = granted.poll(20, TimeUnit.SECONDS);
            assertEquals(null, granted.poll(300, TimeUnit.MILLISECONDS));
            server.say("RLOCK.FORCE app:" + key);
            assertEquals(first, revoked.poll(20, TimeUnit.SECONDS));
            String second = granted.poll(20, TimeUnit.SECONDS);
            var loser = second.equals("one") ? two : one;
            (second.equals("one") ? one : two).stop();
            assertEquals(loser == one ? "one" : "two", granted.poll(20, TimeUnit.SECONDS));
        } finally {
            one.destroy();
            two.destroy();
            others.close();
            client.shutdown(0, 0, TimeUnit.SECONDS);
        }
        server.awaitFree("app:" + key);
    }

    private LockRegistryLeaderInitiator initiator(
            Locks by, String name, LinkedBlockingQueue<String> granted, LinkedBlockingQueue<String> revoked) {
        var candidate = new DefaultCandidate(name, key) {
            @Override
            public void onGranted(Context context) {
                granted.add(name);
            }

            @Override
            public void onRevoked(Context context) {
                revoked.add(name);
            }
        };
        var initiator = new LockRegistryLeaderInitiator(registry(by), candidate);
        initiator.setHeartBeatMillis(50);
        initiator.setBusyWaitMillis(50);
        return initiator;
    }
}

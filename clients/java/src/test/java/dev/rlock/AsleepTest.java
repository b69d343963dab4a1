package dev.rlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class AsleepTest {
    private static final long HOUR = TimeUnit.HOURS.toNanos(1);

    @Test
    void aMachineThatIsAwakeHasNotSlept() {
        assertEquals(0, Asleep.since(Asleep.mark()));
        assertEquals(0, Asleep.since(Asleep.mark() + HOUR));
    }

    @Test
    void aClockThatIsSetIsNoSleep() {
        assumeTrue(Files.exists(Path.of("/proc/uptime")));
        assertTrue(Asleep.since(Asleep.mark() - HOUR) < HOUR / 60);
    }
}

package dev.rlock;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;

/**
 * Ports for servers, below those that the kernel gives to clients, so that a server that starts again finds its own
 * free; and of those, some for each program of tests: the other clients' tests do it alike.
 */
final class Ports {
    private static final int FIRST = 10_000;
    private static final int LAST = 20_000;
    private static final int BLOCK = 400;
    private static final ServerSocket MINE = block();
    private static int given;

    /** One that nobody listens on now, and that no other program of tests is given while this one runs. */
    static synchronized int free() {
        for (int tries = 0; tries < BLOCK; tries++) {
            int port = MINE.getLocalPort() + 1 + given++ % (BLOCK - 1);
            try (var probe = listen(port)) {
                return probe.getLocalPort();
            } catch (IOException taken) {
                // The next one.
            }
        }
        throw new IllegalStateException("no free port");
    }

    /** Who listens on the first port of a block has it. */
    private static ServerSocket block() {
        int blocks = (LAST - FIRST) / BLOCK;
        for (int number = 0; number < blocks; number++) {
            try {
                return listen(FIRST + (int) (ProcessHandle.current().pid() + number) % blocks * BLOCK);
            } catch (IOException taken) {
                // The next one.
            }
        }
        throw new UncheckedIOException(new IOException("other tests have all ports"));
    }

    private static ServerSocket listen(int port) throws IOException {
        return new ServerSocket(port, 1, InetAddress.getByName("127.0.0.1"));
    }
}

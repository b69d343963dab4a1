package dev.rlock;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.UUID;

/** Names of owners: {@code host:pid:uuid}, so that RLOCK.INFO shows who it is. */
final class Owner {
    private static final String PROCESS = host() + ":" + ProcessHandle.current().pid() + ":";

    private Owner() {}

    /**
     * From the system's random bits, each of them: what is kept here for the next one, a counter
     * or a seed, is in two processes that are started from one image.
     */
    static String fresh() {
        return PROCESS + UUID.randomUUID();
    }

    private static String host() {
        String name;
        try {
            name = InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException error) {
            name = "unknown";
        }
        // The server allows 512 bytes for the whole.
        return name.length() > 255 ? name.substring(0, 255) : name;
    }
}

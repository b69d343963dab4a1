package dev.rlock;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;

/** Names of owners: {@code host:pid:uuid}, so that RLOCK.INFO tells who it is. */
final class Owner {
    private static final String PROCESS = host() + ":" + ProcessHandle.current().pid() + ":";

    private static final UUID FIRST = UUID.randomUUID();
    private static final AtomicLong NEXT = new AtomicLong(FIRST.getLeastSignificantBits());

    private Owner() {}

    /** Counted up from a random one: new random bits for each would be a call of the system now and then. */
    static String fresh() {
        return PROCESS + new UUID(FIRST.getMostSignificantBits(), NEXT.getAndIncrement());
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

package interop.bench;

import interop.harness.Resp;

/** By rlock's commands, on a connection of its own. */
final class Native implements Client {
    private final Resp connection;
    private final String acquire;
    private final String release;
    private final String owner;

    Native(int port, String owner) {
        this.connection = new Resp(port);
        this.owner = owner;
        this.acquire = "RLOCK.ACQUIRE " + Permits.NAME + " " + owner + " " + Permits.LEASE_MS
                + " LIMIT " + Permits.LIMIT + " BLOCK 0 WATCHDOG";
        this.release = "RLOCK.RELEASE " + Permits.NAME + " " + owner + " PERMITS";
    }

    @Override
    public void take() {
        if (connection.say(acquire) == null) {
            throw new IllegalStateException("a wait without an end ended");
        }
    }

    @Override
    public void giveBack() {
        connection.say(release);
    }

    @Override
    public int available() {
        for (int count = Permits.LIMIT; count > 0; count--) {
            Object token = connection.say("RLOCK.ACQUIRE " + Permits.NAME + " " + owner + " "
                    + Permits.LEASE_MS + " LIMIT " + Permits.LIMIT + " PERMITS " + count);
            if (token != null) {
                connection.say(release + " ALL");
                return count;
            }
        }
        return 0;
    }
}

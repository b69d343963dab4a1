package dev.rlock;

/** A hold while its release is under way: that it was lost before is notified until the reply. */
record Leaving(Holding holding, long lease) implements Ticket {
    @Override
    public boolean byServer() {
        return holding.byServer();
    }

    void notified(String reason) {
        // Else it is this release that the server notifies.
        if (holding.lost == null && !reason.equals("released")) {
            holding.wasLost(reason);
        }
    }
}

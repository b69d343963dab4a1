package dev.rlock;

/** A hold while its release is under way: that it was lost before is told until the reply. */
record Leaving(Holding holding, long lease) implements Ticket {
    @Override
    public boolean watchdog() {
        return holding.watchdog();
    }

    void heard(String reason) {
        // Else it is this release that the server tells of.
        if (holding.lost == null && !reason.equals("released")) {
            holding.wasLost(reason);
        }
    }
}

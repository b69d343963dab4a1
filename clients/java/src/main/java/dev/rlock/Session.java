package dev.rlock;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;

/**
 * All waits and holds of this process at one server, over one connection at a time. Its monitor
 * guards them and everything in {@link Requests} and {@link Holds}. Whatever a program could run
 * is run by other threads, and so is what ends the connection.
 */
final class Session {
    final Router router;
    final ScheduledExecutorService timer;
    final Dialler dialler;
    final Acks acks;
    final Requests requests;
    final Holds holds;
    /** What the server tells of, by tag: on the present connection. */
    private final Map<Long, Ticket> table = new LinkedHashMap<>();
    /** What must be said on each new connection before anything else, until it is answered. */
    private final Set<Errand> errands = new LinkedHashSet<>();
    private final Heartbeat heartbeat;
    private Wire wire;
    private String channel;
    private long tags;
    private boolean closed;

    Session(Router router, Connector connector, ScheduledExecutorService timer, long timeout) {
        this.router = router;
        this.timer = timer;
        dialler = new Dialler(connector, this, timer, timeout);
        heartbeat = new Heartbeat(timer, this::tick);
        acks = new Acks(connector);
        requests = new Requests(this, timeout);
        holds = new Holds(this, timeout);
    }

    /** Null while there is none. */
    Wire wire() {
        return wire;
    }

    String channel() {
        return channel;
    }

    boolean isClosed() {
        return closed;
    }

    // --- the connection

    synchronized boolean opened(Wire opened, String on) {
        if (closed || opened.isBroken()) {
            timer.execute(opened::close);
            return false;
        }
        wire = opened;
        channel = on;
        heartbeat.start(opened.opened);
        List.copyOf(errands).forEach(this::say);
        requests.sendAll();
        return true;
    }

    boolean hasWork() {
        return !closed && (!errands.isEmpty() || requests.areUnsent());
    }

    synchronized void broke(Wire broken) {
        if (wire != broken) {
            return;
        }
        wire = null;
        heartbeat.stop();
        acks.close();
        var tickets = List.copyOf(table.values());
        table.clear();
        errands.forEach(errand -> errand.over.complete(null));
        for (Ticket ticket : tickets) {
            if (ticket instanceof Holding holding) {
                holds.broke(holding);
            } else {
                requests.broke((Asking) ticket);
            }
        }
        if (hasWork()) {
            dialler.dial();
        }
    }

    /** By another thread, for this one may be in the midst of something. */
    void breakLater() {
        Wire now = wire;
        if (now != null) {
            timer.execute(now::close);
        }
    }

    private synchronized void tick() {
        if (wire == null) {
            return;
        }
        if (heartbeat.isDead()) {
            breakLater();
            return;
        }
        ping();
        errands.stream().filter(errand -> errand.again).toList().forEach(this::say);
        heartbeat.schedule();
    }

    private void ping() {
        long sent = System.nanoTime();
        Wire asked = wire;
        asked.call(Wire.Command.of("PING")).whenComplete((pong, error) -> {
            synchronized (this) {
                if (error == null && wire == asked) {
                    heartbeat.proven(sent);
                }
            }
        });
    }

    // --- what is told by tag

    /** A new name, never used before on this connection. */
    long put(Ticket ticket) {
        table.put(++tags, ticket);
        count(ticket.lease());
        return tags;
    }

    void count(long lease) {
        if (heartbeat.add(lease)) {
            ping();
        }
    }

    void uncount(long lease) {
        heartbeat.remove(lease);
    }

    List<Asking> askings() {
        return table.values().stream().filter(Asking.class::isInstance).map(Asking.class::cast).toList();
    }

    void replace(long tag, Ticket ticket) {
        table.put(tag, ticket);
    }

    boolean knows(long tag, Ticket ticket) {
        return table.get(tag) == ticket;
    }

    void forget(long tag, Ticket ticket) {
        if (table.remove(tag, ticket)) {
            heartbeat.remove(ticket.lease());
        }
    }

    void heard(Wire by, String message) {
        var words = message.split(" ", 3);
        Ticket ticket;
        synchronized (this) {
            ticket = by != wire || words.length < 2 ? null : table.get(tag(words[1]));
            heard(ticket, words);
        }
        if (ticket instanceof Asking asking) {
            asking.tell();
        }
    }

    private void heard(Ticket ticket, String[] words) {
        if (ticket instanceof Asking asking) {
            requests.heard(asking, words[0], words.length > 2 ? words[2] : "");
        } else if (ticket instanceof Holding holding && words[0].equals("lost")) {
            holds.told(holding, words.length > 2 ? words[2] : "");
        }
    }

    private static long tag(String word) {
        try {
            return Long.parseLong(word);
        } catch (NumberFormatException error) {
            return 0; // nobody's
        }
    }

    // --- errands

    void run(Errand errand) {
        if (closed && wire == null) {
            errand.over.complete(null);
            errand.answer.completeExceptionally(closedError());
            return;
        }
        errands.add(errand);
        if (wire == null) {
            errand.over.complete(null);
            dialler.dial();
        } else {
            say(errand);
        }
    }

    synchronized void adopt(Errand errand) {
        run(errand);
    }

    List<Errand> takeErrands() {
        var all = List.copyOf(errands);
        errands.clear();
        return all;
    }

    void drop(Errand errand) {
        errands.remove(errand);
    }

    private void say(Errand errand) {
        Wire by = wire;
        errand.sent = System.nanoTime();
        errand.again = false;
        CompletableFuture<Object> last = null;
        for (Wire.Command command : errand.commands) {
            last = by.call(command);
        }
        last.whenComplete((reply, error) -> {
            boolean done;
            synchronized (this) {
                done = by == wire && answered(errand, reply, error);
            }
            if (done) { // not under the monitor, as Asking.tell
                errand.answer.complete(reply);
                errand.over.complete(null);
            }
        });
    }

    /** True if it is done, which is still to be told. */
    private boolean answered(Errand errand, Object reply, Throwable error) {
        String text = Reply.refusal(error);
        if (error == null) {
            dialler.good();
            errands.remove(errand);
            return true;
        } else if (text == null || Reply.noMaster(text)) {
            breakLater();
        } else if (text.startsWith("MOVED") && router.moves()) {
            errands.remove(errand);
            router.moved(errand);
        } else if (errand.owed && Reply.notNow(text)) {
            errand.again = true;
            errand.over.completeExceptionally(Reply.error(text));
        } else {
            errands.remove(errand);
            errand.answer.completeExceptionally(error);
            errand.over.completeExceptionally(Reply.error(text));
        }
        return false;
    }

    // --- the end

    static ConnectionException closedError() {
        return new ConnectionException("these locks are closed", null);
    }

    /** Everything is released; completes when the server has answered, or need not be asked. */
    synchronized CompletableFuture<Void> close() {
        if (closed) {
            return CompletableFuture.completedFuture(null);
        }
        requests.close();
        for (Ticket ticket : List.copyOf(table.values())) {
            if (ticket instanceof Holding holding) {
                holds.close(holding);
            }
        }
        holds.closePlain();
        var over = new ArrayList<CompletableFuture<?>>();
        if (wire != null) {
            // The replies come in order.
            over.add(wire.call(Wire.Command.of("PING")).handle((pong, error) -> null));
        }
        closed = true;
        acks.close();
        return CompletableFuture.allOf(over.toArray(CompletableFuture[]::new));
    }

    void disconnect() {
        Wire last;
        synchronized (this) {
            last = wire;
        }
        if (last != null) {
            last.close();
        }
    }
}

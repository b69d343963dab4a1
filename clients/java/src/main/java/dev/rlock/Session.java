package dev.rlock;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;

/**
 * All waits and holds of this process at one server, over one connection at a time. The lock
 * guards them and everything in {@link Requests} and {@link Holds}. Whatever a program could run
 * is run by other threads, and so is what ends the connection.
 */
final class Session {
    /** In a cluster one for all nodes, so that a hold can go from one to another. */
    final Object lock;
    final Router router;
    final ScheduledExecutorService timer;
    final Dialler dialler;
    final Acks acks;
    final Requests requests;
    final Holds holds;
    final Hints hints = new Hints(this);
    final Pending pending = new Pending(this);
    /** What the server notifies of, by tag: on the present connection. */
    private final Map<Long, Ticket> table = new LinkedHashMap<>();
    private final Heartbeat heartbeat;
    /** For how long this process may be silent, in ms; 0: the server is not told. */
    private final long patience;
    /** When a command was sent that was answered. */
    volatile Moment proof = new Moment(System.nanoTime(), 0);
    private Wire wire;
    /** Null while there is none: in a cluster its slot can move. */
    private String channel;
    private long tags;
    private boolean closed;
    /** The connection whose server has taken, since the close, all that was said before it. */
    private Wire settled;
    /** After the close: the server has taken all that it would. */
    private CompletableFuture<Void> ending = new CompletableFuture<>();
    /** And nothing is said any more. */
    private boolean ended;

    Session(Router router, Connector connector, ScheduledExecutorService timer, long timeout) {
        this.router = router;
        this.timer = timer;
        lock = router.lock();
        dialler = new Dialler(connector, this, timer, timeout);
        heartbeat = new Heartbeat(timer, this::tick);
        patience = connector.known.patience;
        acks = new Acks(connector, timer, timeout);
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

    boolean listens() {
        return wire != null && channel != null;
    }

    boolean isClosed() {
        return closed;
    }

    boolean isEnded() {
        return ended;
    }

    // --- the connection

    boolean opened(Wire opened) {
        synchronized (lock) {
            if (ended || opened.isBroken()) {
                timer.execute(opened::close);
                return false;
            }
            wire = opened;
            if (opened.plain() != null) {
                opened.plain().start();
            }
            channel = opened.channel();
            heartbeat.start(opened.opened.nanos());
            proof = opened.opened;
            if (tellsPatience()) {
                beat(); // before any hold
            }
            settled = opened; // pending commands are all that a closed one sends
            pending.sayAll();
            requests.sendAll();
            return true;
        }
    }

    void connect() {
        if (wire == null) {
            dialler.dial();
        }
    }

    boolean hasWork() {
        return !ended && (!pending.isEmpty() || requests.areUnsent());
    }

    void broke(Wire broken) {
        synchronized (lock) {
            if (wire != broken) {
                return;
            }
            wire = null;
            if (broken.plain() != null) {
                broken.plain().stop();
            }
            heartbeat.stop();
            var tickets = List.copyOf(table.values());
            table.clear();
            acks.close(); // nobody waits for that any more
            pending.broke();
            for (Ticket ticket : tickets) {
                if (ticket instanceof Holding holding) {
                    holds.broke(holding);
                } else if (ticket instanceof Asking asking) {
                    requests.broke(asking);
                }
            }
            dialler.dial();
            notifyClose();
        }
    }

    /**
     * Another node has the slot of the channel, and all waits of the module's are over. Another channel
     * is taken, which notifies of the holds from then on, and what waited is asked for again.
     */
    void lostChannel(Wire by) {
        synchronized (lock) {
            if (by != wire) {
                return;
            }
            channel = null;
            for (Asking asking : by.plain() == null ? askings() : List.<Asking>of()) {
                forget(asking.tag, asking);
                requests.broke(asking);
            }
        }
        dialler.moveChannel(by).whenComplete((nothing, error) -> {
            if (error != null) {
                by.close();
            }
            synchronized (lock) {
                if (by == wire) {
                    channel = by.channel();
                    holds.regainAll();
                    requests.sendAll();
                }
            }
        });
    }

    /** By another thread, for this one may be in the midst of something. */
    void breakLater() {
        Wire now = wire;
        if (now != null) {
            timer.execute(now::close);
        }
    }

    private void tick() {
        synchronized (lock) {
            if (wire == null) {
                return;
            }
            if (heartbeat.isDead()) {
                breakLater();
                return;
            }
            try {
                beat();
                pending.sayAgain();
                requests.cancelAgain();
            } finally { // an error of the machine's, such as too little memory, is not the last beat
                heartbeat.schedule();
            }
        }
    }

    /** What is answered shows that the server lives, and HEARTBEAT that this process does. */
    private void beat() {
        Moment sent = Moment.now();
        Wire asked = wire;
        boolean tells = tellsPatience();
        var command = tells ? Wire.Command.of("RLOCK.HEARTBEAT", Ticket.patience(table.values(), patience)) : Wire.Command.of("PING");
        asked.call(command).whenComplete((ok, error) -> {
            synchronized (lock) {
                String refusal = Reply.refusal(error);
                if (tells && refusal != null && Finding.mayNot(refusal)) {
                    asked.hearsNoPatience();
                }
                // An error of the server's (BUSY, NOPERM) is an answer too.
                if (error == null || refusal != null) {
                    proven(asked, sent);
                }
            }
        });
    }

    /** What was sent then was answered. */
    void proven(Wire by, Moment sent) {
        if (by == wire) {
            heartbeat.proven(sent.nanos());
            proof = sent.nanos() - proof.nanos() > 0 ? sent : proof;
        }
    }

    private boolean tellsPatience() {
        return patience != 0 && wire.hearsPatience();
    }

    // --- what is notified by tag

    /** A new name, never used before on this connection. */
    long put(Ticket ticket) {
        table.put(++tags, ticket);
        count(ticket.counted());
        return tags;
    }

    void count(long lease) {
        if (heartbeat.add(lease)) {
            beat();
        }
    }

    void uncount(long lease) {
        heartbeat.remove(lease);
    }

    List<Asking> askings() {
        return tickets(Asking.class);
    }

    List<Holding> holdings() {
        return tickets(Holding.class);
    }

    private <T extends Ticket> List<T> tickets(Class<T> kind) {
        return table.values().stream().filter(kind::isInstance).map(kind::cast).toList();
    }

    void replace(long tag, Ticket ticket) {
        table.put(tag, ticket);
    }

    /** False if the tag does not stand for the first of them. */
    boolean replace(long tag, Ticket ticket, Ticket by) {
        return table.replace(tag, ticket, by);
    }

    boolean knows(long tag, Ticket ticket) {
        return table.get(tag) == ticket;
    }

    void forget(long tag, Ticket ticket) {
        if (table.remove(tag, ticket)) {
            heartbeat.remove(ticket.counted());
        }
    }

    void notified(Wire by, String message) {
        var words = message.split(" ", 3);
        Ticket ticket;
        synchronized (lock) {
            ticket = by != wire || words.length < 2 ? null : table.get(Ticket.tag(words[1]));
            notified(ticket, words);
        }
        if (ticket instanceof Asking asking) {
            asking.complete();
        }
    }

    /** A wait that the library has ended: at which time that was asked for is known. */
    void granted(Wire by, long tag, long token, long sent) {
        Asking asking;
        synchronized (lock) {
            asking = by == wire && table.get(tag) instanceof Asking its ? its : null;
            if (asking != null) {
                requests.granted(asking, token, sent);
            }
        }
        if (asking != null) {
            asking.complete();
        }
    }

    private void notified(Ticket ticket, String[] words) {
        String rest = words.length > 2 ? words[2] : "";
        if (ticket instanceof Asking asking) {
            requests.notified(asking, words[0], rest);
        } else if (ticket instanceof Holding holding) {
            holds.notified(holding, words[0], rest);
        } else if (ticket instanceof Leaving leaving && words[0].equals("lost")) {
            leaving.notified(rest);
        }
    }

    /** The server will not have us: who waits for an answer has it. */
    void refuse(RefusedException why) {
        requests.refuse(why);
        pending.refuse(why);
    }

    // --- the end

    static ConnectionException closedError() {
        return new ConnectionException("these locks are closed", null);
    }

    /**
     * Everything is released; completes when the server has answered, also on another connection,
     * should this one have broken just then. To be asked anew where pending commands go between sessions.
     */
    CompletableFuture<Void> close() {
        synchronized (lock) {
            if (!closed) {
                requests.close();
                holdings().forEach(holds::close);
                holds.closePlain();
                closed = true;
                acks.close();
                settle();
            }
            if (ending.isDone() && hasUnsettled()) {
                ending = new CompletableFuture<>();
            }
            notifyClose();
            return ending;
        }
    }

    /** The replies come in order. */
    private void settle() {
        Wire by = wire;
        settled = null;
        if (by != null) {
            by.call(Wire.Command.of("PING")).whenComplete((pong, error) -> {
                synchronized (lock) {
                    if (by == wire && (error == null || Reply.refusal(error) != null)) {
                        settled = by;
                        notifyClose();
                    }
                }
            });
        }
    }

    /** Whether there is something that the server has not got, and would take. */
    boolean hasUnsettled() {
        synchronized (lock) {
            return wire == null ? !pending.isEmpty() : settled != wire || !pending.isPutOff();
        }
    }

    void notifyClose() {
        if (closed && !hasUnsettled()) {
            ending.complete(null);
        }
    }

    /** Completes when there is no connection any more. */
    CompletableFuture<Void> disconnect() {
        Wire last;
        List<PendingCommand> left;
        synchronized (lock) {
            ended = true;
            last = wire;
            left = pending.takeAll();
        }
        for (PendingCommand one : left) {
            one.answer.completeExceptionally(closedError());
            one.over.complete(null);
        }
        if (last == null) {
            return CompletableFuture.completedFuture(null);
        }
        last.close();
        return last.ended;
    }
}

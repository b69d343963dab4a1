package dev.rlock;

import dev.rlock.Wire.Command;
import java.util.ArrayList;
import java.util.List;

/** The commands of one request and of the hold that it becomes. */
record Target(Request request, String owner) {
    private boolean several() {
        return request.keys.size() > 1;
    }

    private List<Object> place() {
        var words = new ArrayList<Object>();
        if (several()) {
            words.add(request.keys.size());
        }
        words.addAll(request.keys);
        words.add(owner);
        return words;
    }

    /** @param wait ms; 0: does not wait */
    Command acquire(long wait, String channel, long tag) {
        var words = place();
        words.add(request.lease);
        switch (request.mode) {
            case READ, WRITE -> words.add(request.mode.word);
            case PERMITS -> words.addAll(List.of("LIMIT", request.limit, "PERMITS", request.permits));
            case PLAIN -> { }
        }
        if (wait != 0) {
            words.addAll(List.of("QUEUE", wait == Request.FOR_EVER ? 0 : wait));
        }
        words.addAll(List.of("NOTIFY", channel, tag, "ONCE"));
        if (request.watchdog) {
            words.add("WATCHDOG");
        }
        return new Command(several() ? "RLOCK.MACQUIRE" : "RLOCK.ACQUIRE", words);
    }

    Command cancel() {
        // A request for several keys ends whole.
        var words = new ArrayList<Object>(List.of(request.key(), owner));
        if (request.mode != Mode.PLAIN) {
            words.add(request.mode.word);
        }
        return new Command("RLOCK.CANCEL", words);
    }

    /** The hold with this token; a late copy of it ends no other. */
    Command release(long token) {
        return release(request.permits, "IFTOKEN", token);
    }

    /** Whatever of it is held, if anything. */
    Command releaseAll() {
        return release("ALL", "IFHELD");
    }

    private Command release(Object... how) {
        var words = place();
        if (several()) {
            return new Command("RLOCK.MRELEASE", words);
        }
        if (request.mode != Mode.PLAIN) {
            words.add(request.mode.word);
        }
        var more = new ArrayList<>(List.of(how));
        if (request.mode != Mode.PERMITS && more.get(0) instanceof Integer) {
            more.remove(0); // how many permits
        }
        words.addAll(more);
        return new Command("RLOCK.RELEASE", words);
    }

    Command renew(long lease, Object... more) {
        var words = place();
        words.add(lease);
        if (request.mode != Mode.PLAIN) {
            words.add(request.mode.word);
        }
        words.addAll(List.of(more));
        return new Command(several() ? "RLOCK.MRENEW" : "RLOCK.RENEW", words);
    }
}

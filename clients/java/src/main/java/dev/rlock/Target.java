package dev.rlock;

import dev.rlock.Wire.Command;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The commands of one request and of the hold that it becomes. */
record Target(Request request, String owner) {
    boolean several() {
        return request.keys.size() > 1;
    }

    /** With an owner that has nothing else: to the library a token does not say which hold is meant. */
    Target alone(Job.Place place) {
        return new Target(request, place.owner() == null ? Owner.fresh() : place.owner());
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

    /** The mode as ACQUIRE names it. */
    private List<Object> wanted() {
        return switch (request.mode) {
            case READ, WRITE -> List.of(request.mode.word);
            case PERMITS -> List.of("LIMIT", request.limit, "PERMITS", request.permits);
            case PLAIN -> List.of();
        };
    }

    private List<Object> mode() {
        return request.mode == Mode.PLAIN ? List.of() : List.of(request.mode.word);
    }

    /**
     * @param wait ms; 0: does not wait
     * @param more that the module alone knows
     */
    Command acquire(long wait, String channel, long tag, Object... more) {
        var options = new ArrayList<Object>();
        options.add(request.lease);
        options.addAll(wanted());
        var words = place();
        words.addAll(options);
        if (wait != 0) {
            words.addAll(List.of("QUEUE", wait == Request.FOR_EVER ? 0 : wait));
        }
        words.addAll(List.of("NOTIFY", channel, tag, "ONCE"));
        if (request.watchdog) {
            words.add("WATCHDOG");
        }
        words.addAll(List.of(more));
        options.add("ONCE");
        return command("acquire", words, options, wait, tag);
    }

    Command cancel() {
        // A request for several keys ends whole.
        var words = new ArrayList<Object>(List.of(request.key(), owner));
        words.addAll(mode());
        return new Command("RLOCK.CANCEL", words, new Call("cancel", this, mode(), 0, 0));
    }

    /** The hold with this token; a late copy of it ends no other. (The library goes by the owner, which had this one alone.) */
    Command release(long token) {
        return release(request.mode == Mode.PERMITS ? List.of(request.permits) : List.of(), List.of("IFTOKEN", token), List.of());
    }

    /** Whatever of it is held, if anything. */
    Command releaseAll() {
        return release(List.of("ALL"), List.of("IFHELD"), List.of("IFHELD"));
    }

    private Command release(List<Object> what, List<Object> how, List<Object> inLibrary) {
        var words = place();
        if (several()) {
            return command("release", words, List.of(), 0, 0);
        }
        var options = new ArrayList<>(mode());
        options.addAll(what);
        words.addAll(options);
        words.addAll(how);
        options.addAll(inLibrary);
        return command("release", words, options, 0, 0);
    }

    /** @param more that the module alone knows */
    Command renew(long lease, Object... more) {
        var options = new ArrayList<Object>(List.of(lease));
        options.addAll(mode());
        var words = place();
        words.addAll(options);
        words.addAll(List.of(more));
        return command("renew", words, options, 0, 0);
    }

    /** The reply is a new token. */
    Command renewWithToken(long lease) {
        var options = new ArrayList<Object>(List.of(lease, "TOKEN"));
        var words = place();
        words.addAll(options);
        return command("renew", words, options, 0, 0);
    }

    private Command command(String name, List<Object> words, List<Object> options, long wait, long tag) {
        String whole = several() ? "m" + name : name;
        return new Command("RLOCK." + whole.toUpperCase(Locale.ROOT), words, new Call(whole, this, options, wait, tag));
    }
}

package dev.rlock;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.CommandOutput;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;

/** What a server replies to a command of rlock: a number, a text, null, or a list of them. */
final class Reply extends CommandOutput<String, String, Object> {
    /** The server is no master now, or not yet. */
    private static final Set<String> NO_MASTER = Set.of("READONLY", "MASTERDOWN", "LOADING", "UNBLOCKED");
    /** The server may not write now, or not this key, or not for us; which may change. */
    private static final Set<String> NOT_NOW = Set.of(
            "NOREPLICAS", "MISCONF", "OOM", "CLUSTERDOWN", "TRYAGAIN", "ASK", "BUSY", "NOAUTH", "NOPERM");

    /** It does not know who we are, or we may not do what we have to. */
    private static final Set<String> NOT_US = Set.of("NOAUTH", "WRONGPASS", "NOPERM");

    static final String NO_SHARDS = "ERR a cluster needs Redis 7.0 or newer, or Valkey: this server has no sharded pub/sub";
    static final String NO_MODULE = "ERR the server has no rlock module: load librlock.so (loadmodule), see the README";

    /** Of a reply that is a list: all that is in it, however deep. */
    private List<Object> list;

    Reply() {
        super(StringCodec.UTF8, null);
    }

    @Override
    public void set(long number) {
        put(number);
    }

    @Override
    public void multi(int count) {
        if (list == null) {
            list = new ArrayList<>();
            output = list;
        }
    }

    private void put(Object value) {
        if (list == null) {
            output = value;
        } else {
            list.add(value);
        }
    }

    // Lettuce takes the reply QUEUED for that of MULTI: it comes as null.
    @Override
    public void set(ByteBuffer bytes) {
        put(bytes == null ? null : codec.decodeValue(bytes));
    }

    /** The server's error text, or null if it was something else that went wrong. */
    static String refusal(Throwable error) {
        return error instanceof RedisCommandExecutionException ? String.valueOf(error.getMessage()) : null;
    }

    /** What lies beneath, which says what is wrong. */
    static Throwable root(Throwable error) {
        return error.getCause() == null ? error : root(error.getCause());
    }

    /** Whether the server will not have us; null: no. Lettuce hides that beneath errors of its own. */
    static RefusedException refused(Throwable error) {
        if (error == null) {
            return null;
        }
        if (error instanceof RefusedException known) {
            return known;
        }
        String text = refusal(error);
        if (text != null) {
            return NOT_US.contains(code(text)) ? new RefusedException(text) : null;
        }
        return Stream.concat(Stream.ofNullable(error.getCause()), Arrays.stream(error.getSuppressed()))
                .map(Reply::refused)
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
    }

    static String code(String text) {
        int end = text.indexOf(' ');
        return end < 0 ? text : text.substring(0, end);
    }

    /** Whether it is no master now, or has lost its module: another connection finds out what there is. */
    static boolean noMaster(String text) {
        return NO_MASTER.contains(code(text)) || text.startsWith("ERR unknown command") && text.contains("RLOCK.");
    }

    static boolean notNow(String text) {
        return NOT_NOW.contains(code(text));
    }

    static RlockException error(String text) {
        if (code(text).equals("DEADLOCK")) {
            return new DeadlockException(text);
        } else if (code(text).equals("MOVED")) { // where nothing goes by slots
            return new RefusedException("MOVED this server is a node of a cluster: give Locks a RedisClusterClient");
        }
        return new RefusedException(text);
    }
}

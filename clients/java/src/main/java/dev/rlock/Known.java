package dev.rlock;

import java.lang.System.Logger.Level;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** What some {@link Locks} know of their servers' backend, require of it, and tell it. */
final class Known {
    private static final String NOT_THERE =
            "order among those who wait and hand-over at once, the server's watchdog, notice of a loss, deadlock detection";

    /** A line for each of them, once in a process. */
    private static final Set<Backend> SAID = ConcurrentHashMap.newKeySet();

    final boolean module;
    /** For how long this process may be silent, in ms; 0: for ever. */
    final long patience;
    private volatile Backend backend;

    /** @param module whether it must be there */
    Known(boolean module, long patience) {
        this.module = module;
        this.patience = patience;
    }

    /** Null while it is not known. */
    Backend backend() {
        return backend;
    }

    /** By another thread, for the program's logger may block. */
    void is(Backend found) {
        Backend before = backend;
        backend = found;
        boolean isNews = found != before && (before != null || found != Backend.MODULE);
        if (isNews && SAID.add(found)) {
            var level = found == Backend.MODULE ? Level.INFO : Level.WARNING;
            CallbackExecutor.POOL.execute(() -> System.getLogger("dev.rlock").log(level, line(found)));
        }
    }

    private static String line(Backend found) {
        return switch (found) {
            case MODULE -> "the server has the rlock module now: locks go by it";
            case FUNCTIONS -> "the server has no rlock module: locks go by its function library, without " + NOT_THERE;
            case SCRIPT -> "the server has no rlock module: locks go by its library as a script, without " + NOT_THERE;
        };
    }
}

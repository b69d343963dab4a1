package interop.harness;

import java.nio.file.Path;

/** What the environment says. */
public final class Settings {
    private Settings() {
    }

    static String server() {
        return or("RLOCK_SERVER", "redis-server");
    }

    static String module() {
        return Path.of(or("RLOCK_MODULE", "../../target/release/librlock.so"))
                .toAbsolutePath().normalize().toString();
    }

    /** How long each contest lasts. */
    public static long contestMillis() {
        return 1000 * Long.parseLong(or("RLOCK_INTEROP_SECONDS", "30"));
    }

    private static String or(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }
}

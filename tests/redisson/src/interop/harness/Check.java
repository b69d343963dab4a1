package interop.harness;

import java.util.Objects;

/** Assertions that say what was expected. */
public final class Check {
    private Check() {
    }

    public static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError("not so: " + what);
        }
    }

    public static void equal(Object wanted, Object found, String what) {
        if (!Objects.equals(wanted, found)) {
            throw new AssertionError(what + ": wanted " + wanted + ", found " + found);
        }
    }

    /** That the call is refused with this code. */
    public static void refused(String code, Resp client, String... words) {
        String said = String.join(" ", words);
        try {
            Object reply = client.call(words);
            throw new AssertionError(said + ": wanted " + code + ", found " + reply);
        } catch (Resp.Refusal refusal) {
            equal(code, refusal.code(), said);
        }
    }
}

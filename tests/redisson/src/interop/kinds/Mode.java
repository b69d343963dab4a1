package interop.kinds;

import java.util.Arrays;

/** The modes of a lock, and what a command says for them. */
public enum Mode {
    EXCLUSIVE, READ, WRITE;

    /** As RLOCK.INFO says it. */
    public String word() {
        return name().toLowerCase();
    }

    /** The words, and the keyword for this mode where there is one. */
    String[] with(String... words) {
        if (this == EXCLUSIVE) {
            return words;
        }
        String[] more = Arrays.copyOf(words, words.length + 1);
        more[words.length] = name();
        return more;
    }
}

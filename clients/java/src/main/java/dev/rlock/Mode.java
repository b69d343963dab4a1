package dev.rlock;

/** How a lock is held, with the word that says so in RELEASE, RENEW and CANCEL. */
enum Mode {
    PLAIN(null),
    READ("READ"),
    WRITE("WRITE"),
    PERMITS("PERMITS");

    final String word;

    Mode(String word) {
        this.word = word;
    }
}

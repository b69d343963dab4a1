package dev.rlock;

import java.util.concurrent.CompletableFuture;

/** What the program has asked for by a request. */
interface Asked<T> {
    Asking asking();

    /** What the program waits for. */
    CompletableFuture<Holding> end();

    /** What the program gets for the grant. */
    T of(Holding granted);

    /** The program does not want it any more, granted or not. */
    void giveUp();
}

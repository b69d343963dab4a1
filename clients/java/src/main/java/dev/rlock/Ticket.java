package dev.rlock;

/** What a tag stands for: a request, or the hold that it became. */
sealed interface Ticket permits Asking, Holding {
    /** In ms. */
    long lease();
}

package dev.rlock;

/** What a server has for these locks, the most first. A program is the same on each of them. */
public enum Backend {
    /** The rlock module: the server grants in order, renews leases and notifies of a loss. */
    MODULE,
    /** The function library, on a server without the module. It is loaded by the first who may. */
    FUNCTIONS,
    /** The same library as a script, where there are no functions, or the user may not use them. */
    SCRIPT
}

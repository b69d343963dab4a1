/**
 * Distributed locks as native commands of Redis and Valkey, over Lettuce.
 *
 * <p>{@link dev.rlock.Locks} is where a program begins: one for each process. What it acquires is
 * a {@link dev.rlock.Hold}; how it asks for more than a plain lock is a {@link dev.rlock.Request}.
 */
package dev.rlock;

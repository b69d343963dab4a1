/** For those who use ShedLock: {@code net.javacrumbs.shedlock:shedlock-core} must be on the class path. */
package dev.rlock.shedlock;

package dev.rlock;

import io.lettuce.core.RedisCredentials;
import io.lettuce.core.RedisCredentialsProvider;
import io.lettuce.core.RedisCredentialsProvider.ImmediateRedisCredentialsProvider;
import io.lettuce.core.RedisURI;
import java.time.Duration;
import java.util.List;

/**
 * Where the program's client connects to, with its TLS and its credentials, and with our own name
 * and time. What gives the credentials may be the program's code, so it is asked by the thread
 * that connects, which may block, and not by one that reads.
 */
final class Address {
    private final RedisURI uri;
    private final List<Address> sentinels;
    private final RedisCredentialsProvider theirs;
    private final Duration timeout;
    private volatile RedisCredentials credentials;

    Address(RedisURI from, Duration timeout) {
        this(from, from, from.getCredentialsProvider(), timeout);
    }

    private Address(RedisURI from, RedisURI ssl, RedisCredentialsProvider theirs, Duration timeout) {
        this.timeout = timeout;
        this.theirs = theirs;
        sentinels = from.getSentinels().stream().map(one -> new Address(one, timeout)).toList();
        var builder = RedisURI.builder(from);
        sentinels.forEach(one -> builder.withSentinel(one.uri));
        if (from.getSentinelMasterId() != null) {
            builder.withSentinelMasterId(from.getSentinelMasterId());
        }
        try {
            uri = builder.withSsl(ssl).withTimeout(timeout).withClientName(Own.NAME).build();
        } catch (IllegalStateException error) {
            throw new IllegalArgumentException("the client has no address: make it with RedisClient.create(\"redis://...\")", error);
        }
        if (!theirs.supportsStreaming()) { // else they change while it is connected
            uri.setCredentialsProvider((ImmediateRedisCredentialsProvider) () -> credentials);
        }
    }

    /** Of a node, with the TLS and the credentials of this one. */
    Address node(RedisURI node) {
        return new Address(node, uri, theirs, timeout);
    }

    /** With the credentials as they are now. */
    RedisURI uri() {
        sentinels.forEach(Address::uri);
        credentials = theirs.resolveCredentials().block(timeout);
        return uri;
    }

    /** With those that were asked for last. */
    RedisURI known() {
        return uri;
    }
}

#!/usr/bin/env python3
"""Takes a lock with the function library, waiting for it: example.py PORT KEY SECONDS

Prints the fencing token, works for a moment, and releases. Needs Python, and nothing
else: any client that can call FCALL and subscribe does the same in fewer lines.
"""
import secrets
import socket
import sys
import time

LEASE = 10_000  # ms


class Connection:
    """As much of RESP2 as this needs."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.buffer = b""

    def call(self, *words):
        self.send(*words)
        return self.read(5)

    def send(self, *words):
        words = [str(word).encode() for word in words]
        parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(parts))

    def read(self, seconds):
        """The next reply; TimeoutError if none begins in time."""
        kind, rest = (line := self.line(seconds))[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if rest == b"-1":
            return None
        if kind == b"$":
            return self.take(int(rest) + 2)[:-2]
        return [self.read(5) for _ in range(int(rest))]

    def line(self, seconds):
        while b"\r\n" not in self.buffer:
            self.fill(seconds)
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def take(self, length):
        while len(self.buffer) < length:
            self.fill(5)
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken

    def fill(self, seconds):
        self.socket.settimeout(max(seconds, 0.001))
        chunk = self.socket.recv(65536)
        if not chunk:
            raise ConnectionError("the server closed the connection")
        self.buffer += chunk


def acquire(server, messages, key, owner, seconds):
    """The token of the lock, or None if it could not be had in time.

    `messages` is a connection of its own: the other one may not call while it listens.
    """
    name = key if "{" in key else "{" + key + "}"
    messages.call("SUBSCRIBE", "redisson_lock__channel:" + name)
    end = time.monotonic() + seconds
    while True:
        # Only now, for a message that came before the subscription is not received.
        words = owner, LEASE, "ONCE", "PLACE", owner, 0
        reply = server.call("FCALL", "rlock1_acquire", 1, key, *words)
        if isinstance(reply, int):
            return reply
        left = end - time.monotonic()
        if left <= 0:
            return None
        # No message says when a lease is over, nor is a message sure to come.
        again = reply[0] / 1000 if reply[0] >= 0 else 1
        try:
            messages.read(min(left, again))
        except TimeoutError:
            pass


def main():
    port, key, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    server, messages = Connection(port), Connection(port)
    # A fresh one for each acquisition: with ONCE, a request may be repeated after a
    # network error, and HELD then says that the first one had arrived.
    owner = "example:" + secrets.token_hex(16)
    token = acquire(server, messages, key, owner, seconds)
    messages.socket.close()
    if token is None:
        sys.exit("not acquired in time")
    try:
        print("token", token, flush=True)
        time.sleep(0.05)  # the work; RENEW if it may last longer than the lease
    finally:
        server.call("FCALL", "rlock1_release", 1, key, owner)


main()

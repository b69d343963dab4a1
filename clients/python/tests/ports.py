"""Ports for servers and proxies, below those that the kernel gives to clients.

The tests of the Python client have this too, by a link.
"""
import itertools
import os
import socket

FIRST, LAST = 10_000, 20_000
BLOCK = 400  # how many each program of tests has for itself: the other clients' tests do it alike


def listen(port):
    guard = socket.socket()
    try:
        guard.bind(("127.0.0.1", port))
        guard.listen()
    except OSError:
        guard.close()
        return None
    return guard


def block():
    """Who listens on the first port of a block has it."""
    blocks = (LAST - FIRST) // BLOCK
    for number in range(os.getpid(), os.getpid() + blocks):
        first = FIRST + number % blocks * BLOCK
        if guard := listen(first):
            return guard, itertools.cycle(range(first + 1, first + BLOCK))
    raise OSError("other tests have all ports")


mine = None


def free_port():
    """One that nobody listens on now, and that no other program of tests is given while this one runs."""
    global mine
    mine = mine or block()
    for _ in range(BLOCK):
        if probe := listen(port := next(mine[1])):
            probe.close()
            return port
    raise OSError("no free port")

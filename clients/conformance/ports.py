"""Ports for servers and proxies, below those that the kernel gives to clients."""
import random
import socket

given = set()


def free_port():
    """One that nobody listens on now, and that this program has not given away before."""
    while True:
        port = random.randrange(11000, 32000)
        if port in given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        given.add(port)
        return port

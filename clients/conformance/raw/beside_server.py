#!/usr/bin/env python3
"""Runs a program beside a server of its own: beside_server.py DIRECTORY PROGRAM [WORD ...]

The server (RLOCK_SERVER) has the module (RLOCK_MODULE). The program gets two ports more
as words: the server's, and that of a proxy that loses replies: of each key that begins
with "cut:" the server carries out the first request that names it, and the client sees
its connection close. Ends as the program does; nothing stays behind.
"""
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ports import free_port

START, PROGRAM = 30, 120  # s, at most


def ends_with_us():
    """The child is killed when this program dies, however it does."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start_server(directory):
    port = free_port()
    log = os.path.join(directory, "server.log")
    words = [os.environ.get("RLOCK_SERVER", "redis-server"), "--port", port, "--bind", "127.0.0.1"]
    words += ["--dir", directory, "--save", "", "--loadmodule", os.environ["RLOCK_MODULE"]]
    with open(log, "wb") as out:
        server = subprocess.Popen(
            [str(word) for word in words], stdout=out, stderr=out, preexec_fn=ends_with_us
        )
    end = time.monotonic() + START
    while time.monotonic() < end and server.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as probe:
                probe.sendall(b"PING\r\n")
                if probe.recv(16).startswith(b"+PONG"):
                    return server, port
        except OSError:
            pass
        time.sleep(0.02)
    server.kill()
    sys.exit(f"the server did not start, see {log}")


class Proxy:
    """Passes everything on but the replies that it loses."""

    def __init__(self, server_port):
        self.server_port = server_port
        self.cut = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.server_port))
            state = {"losing": False}
            for source, target, see in [
                (client, server, self.request),
                (server, client, lambda data, state: not state["losing"]),
            ]:
                threading.Thread(
                    target=self.pump, args=(source, target, see, state), daemon=True
                ).start()

    def request(self, data, state):
        new = set(re.findall(rb"cut:[\w:-]+", data)) - self.cut
        if new:
            self.cut |= new
            state["losing"] = True
        return True

    @staticmethod
    def pump(source, target, see, state):
        """Carries bytes one way; ends both ways when one ends, or when a reply is lost."""
        try:
            while data := source.recv(65536):
                if not see(data, state):
                    break
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def main():
    directory, program = os.path.abspath(sys.argv[1]), sys.argv[2:]
    os.makedirs(directory, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    server, port = start_server(directory)
    try:
        ports = [str(port), str(Proxy(port).port)]
        child = subprocess.Popen(program + ports, stdin=subprocess.DEVNULL, preexec_fn=ends_with_us)
        try:
            code = child.wait(PROGRAM)
        except subprocess.TimeoutExpired:
            print(f"not ok: not over after {PROGRAM} s", flush=True)
            code = 1
        finally:
            child.kill()
            child.wait()
        if server.poll() is not None:
            print(f"not ok: the server has ended, see {directory}/server.log", flush=True)
            code = code or 1
    finally:
        server.kill()
        server.wait()
    sys.exit(1 if code else 0)


main()

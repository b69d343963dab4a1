"""Servers of their own for the tests, and a proxy that can cut, freeze and lose."""

import contextlib
import ctypes
import gc
import os
import signal
import socket
import subprocess
import threading
import time
import weakref

import redis
from ports import free_port


def ends_with_us():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def until(condition, seconds=20.0):
    """Waits for it, generously; what it was at last."""
    end = time.monotonic() + seconds
    while not (good := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return good


def collect():
    """All that is garbage now: gc.collect() does nothing while another thread is at it."""

    class Cycle:
        def __init__(self):
            self.me = self

    gc.disable()  # so that no other thread begins, and takes the mark alone
    try:
        mark = weakref.ref(Cycle())
        while mark():
            gc.collect()
    finally:
        gc.enable()


class Server:
    words = ("--loadmodule", os.environ["RLOCK_MODULE"])

    def __init__(self, directory, *config, port=None):
        self.directory, self.config = str(directory), config
        self.port = port or free_port()
        self.admin = redis.Redis(port=self.port, socket_timeout=10, retry=None, protocol=3)
        self.start()

    def start(self):
        words = [os.environ.get("RLOCK_SERVER", "redis-server"), "--port", self.port, "--bind", "127.0.0.1"]
        words += ["--dir", self.directory, "--save", "", *self.words, *self.config]
        with open(os.path.join(self.directory, f"server-{self.port}.log"), "ab") as log:
            self.process = subprocess.Popen(
                [str(word) for word in words], stdout=log, stderr=log, preexec_fn=ends_with_us
            )
        assert until(self.answers), "the server did not start"

    def answers(self):
        with contextlib.suppress(redis.RedisError):
            return self.admin.ping()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.admin.close()

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def say(self, words):
        return self.admin.execute_command(*words.split())

    def info(self, key):
        return self.say(f"RLOCK.INFO {key}")

    def is_free(self, key):
        return self.info(key)[b"mode"] == b"free"

    def waiters(self, key):
        return self.info(key)[b"waiters"]


class Proxy:
    """Passes everything on, until a test says otherwise."""

    def __init__(self, port):
        self.target = port
        self.frozen = threading.Event()
        self.lose = None  # the next request with these bytes is carried out, its reply lost
        self.unknown = None  # a word that the server does not know
        self.pairs, self.one_step = [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                with self.one_step:  # it is closed by the next cut, or begins after it
                    try:
                        server = socket.create_connection(("127.0.0.1", self.target))
                    except OSError:
                        client.close()
                        continue
                    self.pairs.append((client, server))
                state = {"losing": False}
                for source, target, up in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self.pump, args=(source, target, up, state), daemon=True).start()

    def pump(self, source, target, up, state):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                while self.frozen.is_set():
                    time.sleep(0.01)
                if up and self.lose and self.lose in data:
                    self.lose, state["losing"] = None, True
                if not up and state["losing"]:
                    break
                if up and self.unknown:
                    data = data.replace(self.unknown, self.unknown.swapcase()[::-1])
                target.sendall(data)
        self.shut(source, target)

    @staticmethod
    def shut(*ends):
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        with self.one_step:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            self.shut(*pair)

    def close(self):
        self.shut(self.listener)
        self.listener.close()
        self.frozen.clear()
        self.cut()


class InThread:
    """Work in a thread, whose result or error is waited for."""

    def __init__(self, work):
        self.value = self.error = None

        def run():
            try:
                self.value = work()
            except BaseException as error:
                self.error = error

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def result(self, seconds=20):
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "it is not over yet"
        if self.error:
            raise self.error
        return self.value

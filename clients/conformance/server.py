"""A real server, as a rule with the module, in a directory of its own."""
import asyncio
import os
import shlex
import signal

import by_library
import child
import tls
from ports import free_port
from resp import Error, Parser, Push, encode
from version import SERVER, is_before_7

START = 30  # s, at most
REPLY = 20
RUNNER = "runner"  # the user as whom the runner speaks: scenarios may take any right from the others


class Down(Exception):
    """The server does not answer."""


class Connection:
    """Says one request at a time, by RESP3."""

    def __init__(self):
        self.reader = self.writer = None
        self.parser = Parser()
        self.frames = []

    async def open(self, port):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        reply = await self.say(["HELLO", "3", "AUTH", RUNNER, RUNNER])
        if isinstance(reply, Error):
            raise Down(reply)

    async def say(self, words, within=REPLY):
        # Not wait_for: before Python 3.12 it can lose a cancellation.
        async with asyncio.timeout(within):
            return await self.reply(words)

    async def reply(self, words):
        self.writer.write(encode(words))
        while True:
            while self.frames:
                value = self.frames.pop(0)
                if not isinstance(value, Push):
                    return value
            data = await self.reader.read(65536)
            if not data:
                raise Down("it closed the connection")
            self.frames += [value for value, _ in self.parser.feed(data)]

    def close(self):
        if self.writer:
            self.writer.close()


class Server:
    def __init__(self, name, directory, config, has_module=None, has_tls=False):
        self.name = name
        self.has_module = by_library.BACKEND == "module" if has_module is None else has_module
        self.has_tls = has_tls
        self.directory = os.path.join(directory, name)
        self.log = os.path.join(self.directory, "server.log")
        self.config = config
        self.port = None
        self.cluster_port = self.tls_port = None
        self.process = None
        self.connection = None
        self.one_at_a_time = asyncio.Lock()
        self.stopped = False
        os.makedirs(self.directory, exist_ok=True)

    async def start(self):
        """On its port, or for the first time on any."""
        for _ in range(1 if self.port else 5):
            port = self.port or free_port()
            if await self.start_on(port):
                self.port = port
                return
        raise Down(f"{self.name} did not start: " + "\n".join(child.tail(self.log)))

    async def start_on(self, port):
        words = [SERVER, "--port", port, "--bind", "127.0.0.1"]
        words += ["--dir", self.directory, "--save", ""]
        if self.has_module:
            words += ["--loadmodule", os.environ["RLOCK_MODULE"]]
        for name, values in self.options().items():
            for value in values if isinstance(values, list) else [values]:
                words += [f"--{name}", *str(value).split()]
        with open(self.log, "ab") as out:
            self.process = await child.spawn(words, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out)
        end = asyncio.get_running_loop().time() + START
        while asyncio.get_running_loop().time() < end and self.process.returncode is None:
            try:
                if (await self.ask_on(port, ["PING"])) == "PONG" and self.process.returncode is None:
                    return True
            except (OSError, Down):
                pass
            await asyncio.sleep(0.03)
        await child.end(self.process)
        return False

    def options(self):
        """What is set beyond that: {name: a value or several}."""
        users = self.config.get("user", [])
        users = by_library.without_functions(users if isinstance(users, list) else [users])
        config = {**self.config, "user": [f"{RUNNER} on >{RUNNER} ~* &* +@all", *users]}
        in_cluster = "cluster-enabled" in config
        if in_cluster and not is_before_7():
            self.cluster_port = self.cluster_port or free_port()
            config["cluster-port"] = self.cluster_port
        if self.has_tls:
            self.tls_port = self.tls_port or free_port()
            config.update(tls.keys().of_server(in_cluster), **{"tls-port": self.tls_port})
        return config

    @property
    def bus_port(self):
        """Where it speaks to the other nodes of its cluster."""
        return self.cluster_port or (self.tls_port or self.port) + 10_000

    @staticmethod
    async def ask_on(port, words):
        connection = Connection()
        try:
            await connection.open(port)
            return await connection.say(words)
        finally:
            connection.close()

    async def say(self, text):
        """A raw command; an error reply comes as a value."""
        words = shlex.split(text) if isinstance(text, str) else text
        async with self.one_at_a_time:
            try:
                if self.connection is None:
                    connection = Connection()
                    await connection.open(self.port)
                    self.connection = connection
                return await self.connection.say(words)
            except (OSError, Down, TimeoutError, asyncio.CancelledError) as error:
                if self.connection:
                    self.connection.close()
                    self.connection = None
                if isinstance(error, asyncio.CancelledError):
                    raise
                raise Down(f"{self.name} does not answer {text!r}: {error!r}") from error

    @property
    def alive(self):
        return self.process is not None and self.process.returncode is None and not self.stopped

    def signal(self, number):
        self.process.send_signal(number)
        self.stopped = number == signal.SIGSTOP

    async def kill(self):
        if self.connection:
            self.connection.close()
            self.connection = None
        if self.process and self.process.returncode is None:
            await child.end(self.process)

    async def follows(self, master):
        """Waits until this replica of the master has all that it has."""
        await self.say(f"REPLICAOF 127.0.0.1 {master.port}")
        while True:
            here = await self.say("INFO replication")
            there = await master.say("INFO replication")
            if "master_link_status:up" in here and "state=online" in there:
                return
            await asyncio.sleep(0.05)

"""What a scenario has: servers, proxies, drivers, and the requests that are under way."""
import asyncio
import os
import shlex

import by_library
import tls
from cluster import Cluster
from driver import Driver
from proxy import Proxy
from resp import Error
from server import Connection, Down, Server


class World:
    def __init__(self, client, directory):
        self.client = client
        self.directory = directory
        self.servers, self.clusters, self.proxies, self.drivers = {}, {}, {}, {}
        self.later = {}  # name: a future
        self.ids = {}  # name: the id of that request
        self.together = set()  # keys that a driver asked for among several
        self.waiting = []  # connections and tasks of raw commands that wait
        self.kept = {**by_library.REASONS, "backend": by_library.BACKEND}

    def at(self, name):
        """Whatever has a port by this name."""
        for those in (self.proxies, self.servers, self.clusters):
            if name in those:
                return those[name]
        raise ValueError(f"there is no server or proxy {name!r}")

    async def start_server(self, name="s", replica_of=None, config=None, cluster=0, **kind):
        """`kind`: `module: false`, `tls: true`."""
        kind = {f"has_{what}": value for what, value in kind.items()}
        if cluster:
            made = self.clusters[name] = Cluster(name, self.directory, config or {}, cluster, **kind)
            self.servers.update({node.name: node for node in made.nodes})
            return await made.start()
        made = self.servers[name] = Server(name, self.directory, config or {}, **kind)
        await made.start()
        if replica_of:
            await made.follows(self.servers[replica_of])

    async def start_proxy(self, name="p", server="s"):
        made = self.proxies[name] = Proxy(self.servers[server])
        await made.start()

    async def start_driver(self, name):
        made = self.drivers[name] = Driver(name, self.client, self.directory)
        await made.start()

    def request(self, driver, what, words):
        """Sends it, with what the runner fills in."""
        words = dict(words)
        words.setdefault("locks", "l")
        self.together.update(words.get("keys", []))
        if what == "sticky" or what.startswith(("use", "sticky_")):
            words.setdefault("sticky", "y")
            words.setdefault("use", "u")
        elif what not in ("open", "close", "count", "quorum", "cancel", "hello"):
            words.setdefault("hold", "h")
        if "to" in words:
            words.update(self.address(self.at(words.pop("to")), words))
        if "servers" in words:
            each = [self.address(self.at(name), words) for name in words["servers"]]
            words["servers"] = [[one["host"], one["port"]] for one in each]
            words.update({"ca": one["ca"] for one in each if "ca" in one})
        if what == "cancel":
            words["acquire"] = self.ids[words["acquire"]]
        if "file" in words:
            words["file"] = self.file(words["file"])
        return self.drivers[driver].request(what, words)

    @staticmethod
    def address(place, words):
        """Where `open` is to go; over TLS with the authority's certificate, or another's."""
        if not words.get("tls"):
            return {"host": "127.0.0.1", "port": place.port}
        return {"host": "127.0.0.1", "port": place.tls_port, "ca": tls.keys().of_client(words.get("ca", "ca"))}

    def file(self, name):
        """A file with a number, 0 at first."""
        path = os.path.join(self.directory, name)
        if not os.path.exists(path):
            with open(path, "w", encoding="ascii") as made:
                made.write("0")
        return path

    async def say(self, name, text):
        """A raw command; in a cluster at the node that serves its key."""
        words = shlex.split(text) if isinstance(text, str) else text
        server = self.at(name)
        if isinstance(server, Cluster):
            server = await server.owner_of(words[1])
        if server.has_module:
            return await server.say(words)
        return await by_library.say(server, words, len(self.drivers), self.together)

    async def load(self, name, what):
        """The module, or the library as functions, under those who use the server."""
        server = self.servers[name]
        if what == "module":
            reply = await server.say(["MODULE", "LOAD", os.environ["RLOCK_MODULE"]])
            server.has_module = True
        else:
            reply = await server.say(["FUNCTION", "LOAD", by_library.LIBRARY.read_text()])
        if isinstance(reply, Error):
            raise Down(reply)

    def say_later(self, name, server, text):
        """A raw command that may wait, on a connection of its own."""

        async def say():
            words = shlex.split(text)
            if words[0].upper().startswith("RLOCK.") and not self.at(server).has_module:
                raise by_library.NoCounterpart(words)
            connection = Connection()
            self.waiting.append(connection)
            await connection.open(self.at(server).port)
            return await connection.say(words, None)

        task = self.later[name] = asyncio.create_task(say())
        self.waiting.append(task)

    async def stop_waiting(self):
        tasks = [task for task in self.waiting if isinstance(task, asyncio.Task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in self.waiting:
            if isinstance(one, Connection):
                one.close()

    async def of_drivers(self):
        """The owners that hold or wait on servers which are up, but for raw ones."""
        found = []
        for server in self.servers.values():
            if not server.alive:
                continue
            try:
                found += await (owners if server.has_module else by_library.owners)(server)
            except Down:
                if server.alive:
                    raise
        return [one for one in found if not one.split(" ")[0].startswith("raw")]

    async def end(self):
        await self.stop_waiting()
        ends = [driver.kill() for driver in self.drivers.values()]
        ends += [proxy.end() for proxy in self.proxies.values() if proxy.listener]
        ends += [server.kill() for server in self.servers.values()]
        await asyncio.gather(*ends, return_exceptions=True)


async def owners(server):
    """Those who hold or wait there, each with what it does."""
    found, cursor = [], "0"
    while True:
        cursor, page = await server.say(f"RLOCK.LIST CURSOR {cursor} COUNT 250")
        found += [f"{one['owner']} holds {one['key']} on {server.name}" for one in page]
        if str(cursor) == "0":
            break
    for one in await server.say("RLOCK.TOP"):
        waiters = await server.say(["RLOCK.WAITERS", one["key"]])
        found += [f"{waiter['owner']} waits for {one['key']} on {server.name}" for waiter in waiters]
    return found

"""Servers that are the nodes of one cluster, and slots that move between them."""
import asyncio

from resp import Error
from server import Server

SLOTS = 16384


class Cluster:
    def __init__(self, name, directory, config, size, **kind):
        config = {**config, "cluster-enabled": "yes", "cluster-node-timeout": 5000}
        self.name = name
        self.nodes = [Server(f"{name}{n + 1}", directory, config, **kind) for n in range(size)]

    @property
    def port(self):
        return self.nodes[0].port

    @property
    def tls_port(self):
        return self.nodes[0].tls_port

    async def start(self):
        await asyncio.gather(*(node.start() for node in self.nodes))
        first, size = self.nodes[0], len(self.nodes)
        for n, node in enumerate(self.nodes):
            # Not ADDSLOTSRANGE, which Redis 6.2 does not know.
            await self.ok(node, ["CLUSTER", "ADDSLOTS", *range(n * SLOTS // size, (n + 1) * SLOTS // size)])
            await self.ok(node, f"CLUSTER SET-CONFIG-EPOCH {n + 1}")
        for node in self.nodes[1:]:
            await self.ok(first, f"CLUSTER MEET 127.0.0.1 {node.port} {node.bus_port}")
        for node in self.nodes:
            while not await self.is_whole(node):
                await asyncio.sleep(0.05)

    async def is_whole(self, node):
        info = await node.say("CLUSTER INFO")
        return "cluster_state:ok" in info and f"cluster_known_nodes:{len(self.nodes)}" in info

    @staticmethod
    async def ok(node, text):
        reply = await node.say(text)
        if isinstance(reply, Error):
            raise RuntimeError(f"{node.name} says to {text!r}: {reply}")
        return reply

    async def owner_of(self, key):
        """The node that serves the key."""
        slot = await self.nodes[0].say(["CLUSTER", "KEYSLOT", key])
        for node in self.nodes:
            for first, last, (_, port, *_), *_ in await node.say("CLUSTER SLOTS"):
                if first <= slot <= last and port == node.port:
                    return node
        raise RuntimeError(f"no node serves {key}")

    async def move(self, key, target):
        """The key's slot, with what is in it, to another node: as resharding does it."""
        slot = await self.nodes[0].say(["CLUSTER", "KEYSLOT", key])
        source = await self.owner_of(key)
        ids = {node: await node.say("CLUSTER MYID") for node in self.nodes}
        await self.ok(target, f"CLUSTER SETSLOT {slot} IMPORTING {ids[source]}")
        await self.ok(source, f"CLUSTER SETSLOT {slot} MIGRATING {ids[target]}")
        while keys := await self.ok(source, f"CLUSTER GETKEYSINSLOT {slot} 100"):
            words = ["MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys]
            await self.ok(source, words)
        others = [node for node in self.nodes if node not in (target, source)]
        for node in [target, source, *others]:
            await self.ok(node, f"CLUSTER SETSLOT {slot} NODE {ids[target]}")

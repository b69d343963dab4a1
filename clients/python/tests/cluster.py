"""A cluster of three masters, each with a replica if wanted."""

from redis.crc import key_slot
from servers import Server, free_port, until

SLOTS = 16384


class Cluster:
    def __init__(self, directory, replicas=False):
        self.masters = [self.node(directory) for _ in range(3)]
        self.replicas = [self.node(directory) for _ in range(3)] if replicas else []
        self.nodes = self.masters + self.replicas
        for number, node in enumerate(self.masters):
            first, last = number * SLOTS // 3, (number + 1) * SLOTS // 3 - 1
            node.say(f"CLUSTER ADDSLOTSRANGE {first} {last}")
        for number, node in enumerate(self.nodes):
            node.say(f"CLUSTER SET-CONFIG-EPOCH {number + 1}")
        for node in self.nodes[1:]:
            self.nodes[0].say(f"CLUSTER MEET 127.0.0.1 {node.port} {node.bus}")
        for node in self.nodes:
            assert until(lambda node=node: self.is_whole(node)), "no cluster"
        for master, replica in zip(self.masters, self.replicas):
            replica.say(f"CLUSTER REPLICATE {self.id(master)}")
        for master in self.masters if replicas else []:
            assert until(lambda master=master: master.admin.info("replication").get("slave0", {}).get("state") == "online")

    @staticmethod
    def node(directory):
        bus = free_port()
        config = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--repl-diskless-sync-delay", "0"]
        server = Server(directory, *config, "--cluster-port", bus, "--cluster-config-file", f"nodes-{bus}.conf")
        server.bus = bus
        return server

    def is_whole(self, node):
        info = node.say("CLUSTER INFO").decode()
        return "cluster_state:ok" in info and f"cluster_known_nodes:{len(self.nodes)}" in info

    @staticmethod
    def id(node):
        return node.say("CLUSTER MYID").decode()

    @staticmethod
    def key_at(number, prefix=""):
        """A key that the master with this number has."""
        names = (f"{prefix}{n}" for n in range(1000))
        return next(name for name in names if key_slot(name.encode()) * 3 // SLOTS == number)

    def move(self, slot, source, target):
        """A slot with no keys in it."""
        for node in [target, source, *self.masters]:
            node.say(f"CLUSTER SETSLOT {slot} NODE {self.id(target)}")

    def kill(self):
        for node in self.nodes:
            node.kill()

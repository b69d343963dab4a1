"""A proxy between a driver and a server, which knows replies from messages and loses some."""
import asyncio
from collections import deque

from by_library import as_command
from ports import free_port
from resp import Parser, Push

SUBSCRIBING = {"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"}
MESSAGES = {"message", "pmessage", "smessage"}
PING = b"*1\r\n$4\r\nPING\r\n"


class Rule:
    """What happens to the next request that begins with these words, and to its reply."""

    def __init__(self, kind, words, ms=0):
        self.kind, self.words, self.ms = kind, words.lower(), ms

    def is_about(self, words):
        """So, or as a call of the library that stands for it."""
        if self.kind == "old":
            return self.words in (word.lower() for word in words)
        return " ".join(as_command(words)).lower().startswith(self.words)


class Link:
    """One client's connection, and that to the server."""

    def __init__(self, proxy, client):
        self.proxy = proxy
        self.client = client
        self.server = None
        self.waiting = deque()  # [words, how many messages answer it, its rule]
        self.silent = False  # nothing goes to the client any more
        self.losing = False  # the reply to a request is about to be lost
        self.behind = []  # replies that come after the next message
        self.orphaned = False  # the server does not learn that the client is gone

    async def run(self):
        tasks = []
        try:
            await self.proxy.moves.wait()
            self.server = await asyncio.open_connection("127.0.0.1", self.proxy.target.port)
            tasks = [asyncio.create_task(self.up()), asyncio.create_task(self.down())]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await self.proxy.moves.wait()
        except OSError:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for *_, rule in self.waiting:
                self.proxy.done(rule)
            self.abort()

    def abort(self):
        self.client[1].close()
        if self.server and self.orphaned:
            self.proxy.orphans.append(self.server[1])
        elif self.server:
            self.server[1].close()

    async def up(self):
        """Carries requests to the server."""
        parser = Parser(requests=True)
        while data := await self.client[0].read(65536):
            for words, raw in parser.feed(data):
                await self.proxy.moves.wait()
                rule = self.proxy.take_rule(words)
                if rule and rule.kind == "lose":
                    await self.answered()
                    self.proxy.done(rule)
                    return
                if rule and rule.kind == "old":
                    raw = PING  # whose reply comes when that of the request would
                self.waiting.append([words, self.messages(words), rule])
                if rule and rule.kind in ("cut", "drop"):
                    self.losing = True
                self.server[1].write(raw)
                await self.server[1].drain()
                if rule and rule.kind == "cut":
                    while await self.client[0].read(65536):
                        pass  # what comes behind it is lost; `down` ends both
                    return

    async def answered(self):
        """What was asked before has its replies, unless that takes long."""
        for _ in range(100):
            if not self.waiting:
                return
            await asyncio.sleep(0.01)

    @staticmethod
    def messages(words):
        """How many messages are the answer; 0: one reply."""
        if not words or words[0].lower() not in SUBSCRIBING:
            return 0
        return max(1, len(words) - 1)

    async def down(self):
        """Carries replies and messages to the client."""
        parser = Parser()
        while data := await self.server[0].read(65536):
            for value, raw in parser.feed(data):
                asked, rule = self.answers(value)
                if rule and rule.kind == "cut":
                    self.proxy.done(rule)
                    return
                if rule and rule.kind == "drop":
                    self.proxy.done(rule)
                    self.silent = True
                if rule and rule.kind == "old":
                    raw = f"-ERR syntax error at '{rule.words.upper()}'\r\n".encode()
                if rule and rule.kind == "delay":
                    await asyncio.sleep(rule.ms / 1000)
                    self.proxy.done(rule)
                if self.silent or (self.losing and not asked):
                    continue
                if asked and (self.behind or (rule and rule.kind == "behind")):
                    self.behind.append((raw, rule))
                    continue
                if self.behind and self.is_message(value):
                    raw += b"".join(reply for reply, _ in self.behind)
                    self.proxy.done(self.behind[0][1])
                    self.behind = []
                await self.proxy.moves.wait()
                await self.proxy.flows.wait()
                self.client[1].write(raw)
                await self.client[1].drain()
        await self.proxy.flows.wait()

    @staticmethod
    def is_message(value):
        """A message in RESP2 is an array as others are."""
        return isinstance(value, list) and len(value) > 2 and value[0] in MESSAGES

    def answers(self, value):
        """Whether this is the answer to a request, or a part of it; and the rule of that."""
        head = self.waiting[0] if self.waiting else None
        of_subscribing = bool(head and head[1] and isinstance(value, list) and value and value[0] == head[0][0].lower())
        is_message = isinstance(value, Push) or self.is_message(value)
        if head is None or (is_message and not of_subscribing):
            return False, None
        if of_subscribing and head[1] > 1:
            head[1] -= 1
            return True, None
        return True, self.waiting.popleft()[2]


class Proxy:
    def __init__(self, target):
        self.target = target
        self.port = None
        self.rules = []
        self.old = []  # rules for good
        self.under_way = set()  # rules that took a request and wait for its reply
        self.links = {}
        self.orphans = []
        self.listener = None
        self.moves = asyncio.Event()  # anything goes through
        self.flows = asyncio.Event()  # what the server says goes through
        self.moves.set()
        self.flows.set()

    async def start(self):
        for _ in range(20):
            self.port = free_port()
            try:
                return await self.listen()
            except OSError:
                continue
        raise OSError("no port is free")

    async def listen(self):
        self.listener = await asyncio.start_server(self.accept, "127.0.0.1", self.port)

    async def accept(self, reader, writer):
        link = Link(self, (reader, writer))
        self.links[link] = asyncio.current_task()
        try:
            await link.run()
        except asyncio.CancelledError:
            pass  # closed by a rule: the end of this task is nobody's concern
        finally:
            self.links.pop(link, None)

    def take_rule(self, words):
        for rule in self.rules:
            if rule.is_about(words):
                self.rules.remove(rule)
                self.under_way.add(rule)
                return rule
        return next((rule for rule in self.old if rule.is_about(words)), None)

    def done(self, rule):
        self.under_way.discard(rule)

    def used(self):
        """Whether each rule has met its request and done its work."""
        return not self.rules and not self.under_way

    async def rule(self, what):
        """One of the rules of the README: a word, or {word: the request}."""
        if isinstance(what, dict):
            kind = next(kind for kind in ("cut", "drop", "lose", "delay", "behind", "old") if kind in what)
            rules = self.old if kind == "old" else self.rules
            rules.append(Rule(kind, what[kind], what.get("ms", 0)))
            return
        match what:
            case "hold":
                self.flows.clear()
            case "let":
                self.flows.set()
            case "freeze":
                self.moves.clear()
            case "thaw":
                self.moves.set()
            case "close":
                await self.close_links()
            case "orphan":
                for link in self.links:
                    link.orphaned = True
                await self.close_links()
            case "refuse":
                self.listener.close()
            case "accept":
                await self.listen()
            case _:
                raise ValueError(f"there is no rule {what!r}")

    async def close_links(self):
        tasks = list(self.links.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def switch(self, target):
        self.target = target
        await self.close_links()

    async def end(self):
        self.listener.close()
        await self.close_links()
        for writer in self.orphans:
            writer.close()

"""Locks by a connection of their own, for all tasks of an event loop (redis-py's asyncio)."""
import asyncio
import collections
import itertools
import math
import uuid

import redis


class Session:
    async def open(self, client):
        self.pool = client.connection_pool
        self.channel = "rlock:" + uuid.uuid4().hex
        self.tags = itertools.count(1)
        self.inboxes = {}  # by tag: what the server notifies of a request, and of its hold
        self.replies = collections.deque()
        self.lost = None
        # In docs/clients.md:
        self.connection = await self.pool.get_connection()
        await self.connection.send_command("SUBSCRIBE", self.channel)
        await self.connection.read_response(push_request=True)
        # So far.
        self.reader = asyncio.create_task(self.read())
        return self

    async def call(self, *words):
        if self.lost:
            raise self.lost
        reply = asyncio.get_running_loop().create_future()
        self.replies.append(reply)  # replies come in the order of the commands
        await self.connection.send_command(*words)
        return await asyncio.shield(reply)

    # In docs/clients.md:
    async def acquire(self, key, owner, lease, wait, *words):
        """The token, or None after `wait` ms; and where the loss of the hold is notified."""
        tag = str(next(self.tags))
        inbox = self.inboxes[tag] = asyncio.Queue()
        words = ("QUEUE", wait, "NOTIFY", self.channel, tag, "ONCE", *words)
        try:
            reply = await self.call("RLOCK.ACQUIRE", key, owner, lease, *words)
            if reply != b"QUEUED":
                return reply, inbox
            word, *rest = await inbox.get()
            if word in ("error", "lost"):
                raise redis.RedisError(*rest)
            return int(rest[0]) if rest else None, inbox
        except asyncio.CancelledError:
            if not self.lost and not await self.call("RLOCK.CANCEL", key, owner):
                await self.call("RLOCK.RELEASE", key, owner, "IFHELD")  # the grant had gone out
            raise

    # So far.

    async def read(self):
        options = {"push_request": True, "timeout": math.inf, "disconnect_on_error": False}
        try:
            while True:
                try:
                    reply = await self.connection.read_response(**options)
                except redis.ResponseError as error:
                    self.replies.popleft().set_exception(error)
                    continue
                if isinstance(reply, list) and reply[0] == b"message":
                    word, tag, *rest = reply[2].decode().split(" ", 2)
                    self.inboxes[tag].put_nowait((word, *rest))
                else:
                    self.replies.popleft().set_result(reply)
        except (redis.ConnectionError, OSError) as error:
            self.end(error)

    def end(self, error):
        """With the connection all waits and all holds with WATCHDOG are over."""
        self.lost = error
        for reply in self.replies:
            reply.set_exception(error)
        for inbox in self.inboxes.values():
            inbox.put_nowait(("lost", "connection"))

    async def close(self):
        self.reader.cancel()
        if not self.lost:
            self.end(redis.ConnectionError("the session is closed"))
        await self.connection.disconnect()
        await self.pool.release(self.connection)

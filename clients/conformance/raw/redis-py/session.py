"""Locks by a connection of their own, for all threads of a process (redis-py)."""
import collections
import itertools
import queue
import threading
import uuid
from concurrent.futures import Future

import redis


class Session:
    def __init__(self, client):
        self.pool = client.connection_pool
        self.channel = "rlock:" + uuid.uuid4().hex
        self.tags = itertools.count(1)
        self.inboxes = {}  # by tag: what the server notifies of a request, and of its hold
        self.replies = collections.deque()
        self.sending = threading.Lock()
        self.lost = threading.Event()
        # In docs/clients.md:
        self.connection = self.pool.get_connection()
        self.connection.send_command("SUBSCRIBE", self.channel)
        self.connection.read_response(push_request=True)
        # So far.
        threading.Thread(target=self.read, daemon=True).start()

    def call(self, *words):
        reply = Future()
        with self.sending:  # replies come in the order of the commands
            if self.lost.is_set():
                raise redis.ConnectionError("the session is over, make a new one")
            self.replies.append(reply)
            self.connection.send_command(*words)
        return reply.result()

    def acquire(self, key, owner, lease, *words):
        """The reply, and where the rest is notified."""
        tag = str(next(self.tags))
        inbox = self.inboxes[tag] = queue.SimpleQueue()
        notified = ("NOTIFY", self.channel, tag)
        return self.call("RLOCK.ACQUIRE", key, owner, lease, *notified, "ONCE", *words), inbox

    # In docs/clients.md:
    def read(self):
        options = {"push_request": True, "timeout": None, "disconnect_on_error": False}
        try:
            while True:
                try:
                    reply = self.connection.read_response(**options)
                except redis.ResponseError as error:
                    self.replies.popleft().set_exception(error)
                    continue
                if isinstance(reply, list) and reply[0] == b"message":
                    word, tag, *rest = reply[2].decode().split(" ", 2)
                    self.inboxes[tag].put((word, *rest))
                else:
                    self.replies.popleft().set_result(reply)
        except Exception as error:  # the connection, as a rule
            self.end(error)

    # So far.

    def close(self):
        self.connection.disconnect()

    def end(self, error):
        """With the connection all waits and all holds with WATCHDOG are over."""
        with self.sending:
            self.lost.set()
            for reply in self.replies:
                reply.set_exception(error)
        for inbox in list(self.inboxes.values()):
            inbox.put(("lost", "connection"))
        self.connection.disconnect()
        self.pool.release(self.connection)

"""The life of a session's connection: what is sent, what is answered, when it is given up.

Bytes come in by `receive`, go out by `out`, and time comes in as `now`: whoever has the
socket does the rest. What the program is to be notified by is put in `calls`, to be run by the
owner of the socket once its lock is free.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ._ask import NAME, fresh_channel
from ._beat import Beat
from ._clock import Timers
from ._resp import Failure, Parser, Push, encode
from ._states import Call, Pending

# The server is no master now: the address may soon lead to one.
NO_MASTER = ("READONLY", "MASTERDOWN", "LOADING")
BACKOFF = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0)  # s, before each attempt to reconnect
# s: later than that is only a process that was paused; and so long is read what has come meanwhile.
LATE = 0.1
BROKEN = object()  # in the place of a reply: the connection broke before it came
SETNAME = ("CLIENT", "SETNAME", NAME)  # so that CLIENT LIST says what it is


class Protocol:
    def __init__(self, timeout: float, place: Callable[[], str | None] | None = None) -> None:
        self.timeout = timeout
        self.place = place  # in a cluster: a hash tag in a slot of this node, for the channel
        self.out = bytearray()
        self.calls: deque[Callable[[], object]] = deque()
        self.timers = Timers()
        self.beat = Beat()
        self.connecting = False
        self.connected = False
        self.ready = False  # subscribed too
        self.homeless = False  # the slot of the channel is another node's now
        self.closed = False
        self.leave_by = math.inf  # once it is closed: what was not sent by then is not sent
        self.drop: str | None = None  # why the connection is to be closed
        self.trouble = ""  # why there was no connection the last time
        self.channel = ""
        self.flight: deque[Call] = deque()
        self.pending_commands: list[Call] = []  # first of all on the next connection
        self.refused: deque[Call] = deque()  # to be retried in a moment
        self.read_until = 0.0  # this process was paused: before that nothing counts as not answered
        self._spared = 0.0  # nor is the connection given up before that
        self._due = math.inf  # when it is to look again
        self._again_at = 0.0
        self._parser = Parser()
        self._failures = 0
        self._connect_at = 0.0
        self._began = 0.0

    # Listener by the owner of the socket.

    def began(self, now: float) -> None:
        """There is a connection, and it has said HELLO 3."""
        self.connecting, self.connected, self.drop = False, True, None
        self._parser, self._began = Parser(), now
        self.beat.start(now)
        naming = Call(SETNAME, lambda reply, now: None)  # who may not name it has no name
        naming.sent = now
        self.flight.append(naming)
        self.out += encode(SETNAME)
        self._subscribe()

    def receive(self, data: bytes, now: float) -> None:
        # What comes too late is no proof, unless it lay there while this process itself was paused.
        self.tick(now)
        try:
            replies = self._parser.feed(data)
        except ValueError as error:
            self.drop = str(error)
            return
        for reply in replies:
            if self.drop:
                return
            if isinstance(reply, Push):
                self._pushed([item if isinstance(item, bytes) else b"" for item in reply.items], now)
            elif not self.flight:
                self.drop = f"{reply.code} {reply.text}" if isinstance(reply, Failure) else "a reply to nothing"
                if isinstance(reply, Failure) and reply.code not in NO_MASTER:
                    self._never(reply.code, reply.text, now)
            elif isinstance(reply, Failure) and reply.code in NO_MASTER:
                self.drop = f"{reply.code} {reply.text}"
            else:
                call = self.flight.popleft()
                self.beat.proved(call.sent)
                (call.answered or partial(self._tidied, call))(reply, now)

    def ended(self, now: float, why: str) -> None:
        """The connection is closed, or there was none. What an exception has left of it is
        done when it is called again."""
        self.connecting = self.connected = self.ready = self.homeless = False
        self.trouble = self.drop or why
        self.drop = None
        self.out.clear()
        for calls in (self.flight, self.refused):
            while calls:
                call = calls.popleft()
                if call.answered:
                    call.answered(BROKEN, now)
                if call.again is not None:
                    call.words = call.again
                    self.add_pending(call, now)
        self._connect_at = now + BACKOFF[min(self._failures, len(BACKOFF) - 1)]
        self._failures += 1
        self._broken(now)

    def tick(self, now: float) -> None:
        """What is due by now."""
        if now - self._due > LATE:
            self.read_until = now + LATE
        if self._stood_still(now):
            # The server has a third of the lease to answer.
            self._spared = now + self.beat.third
        self._due = math.inf
        self.timers.run(now)
        if self.pending_commands:
            self.pending_commands = [call for call in self.pending_commands if call.until > now and now < self.leave_by]
        if not self.connected or self.drop:
            return
        if now >= self._dead_at():
            self.drop = "the server does not answer"
        elif self.ready and now >= self.beat.ask_at():
            self.beat.asked(now)
            self.send(Call(("PING",), self._ponged), now)
        if self.refused and now >= self._again_at:
            for _ in range(len(self.refused)):
                call = self.refused.popleft()
                if call.until > now:
                    self.send(call, now)

    def _stood_still(self, now: float) -> bool:
        """The replies may lie unread, and so may the news that the connection was closed."""
        return now - self._due > self.beat.third

    def limit(self, pending: Pending, at: float, late: Callable[[float], object]) -> None:
        """It was not answered by then, unless the answer lies unread."""

        def due(now: float) -> None:
            if now < self.read_until:
                self.limit(pending, self.read_until, late)
            else:
                late(now)

        pending.timer = self.timers.at(at, due)

    def next_time(self) -> float:
        """When `tick`, or a new connection, is due."""
        self._due = self._next_time()
        return self._due

    def _next_time(self) -> float:
        due = self.timers.next()
        if self.connected:
            due = min(due, self._dead_at())
            if self.ready:
                due = min(due, self.beat.ask_at())
            if self.refused:
                due = min(due, self._again_at)
        elif self.busy and not self.connecting:
            due = min(due, self._connect_at)
        return min(due, self.leave_by) if self.pending_commands else due

    def wants_connection(self, now: float) -> bool:
        return not (self.connected or self.connecting) and self.busy and now >= self._connect_at

    @property
    def busy(self) -> bool:
        return bool(self.pending_commands)

    # For the session's own use.

    def send(self, call: Call, now: float) -> None:
        if self.ready:
            call.sent = now
            self.flight.append(call)
            self.out += encode(call.words)
        elif call.again is not None:
            self.add_pending(call, now)

    def add_pending(self, call: Call, now: float) -> None:
        """First of all on the next connection."""
        call.parted(now)
        self.pending_commands.append(call)

    def hurry(self, now: float) -> None:
        """Somebody asks: no long pause before the next attempt to connect."""
        self._connect_at = min(self._connect_at, now + BACKOFF[1])

    @property
    def failing(self) -> bool:
        """It broke more than once."""
        return self._failures > 1

    def retry_later(self, call: Call, now: float) -> None:
        self.refused.append(call)
        self._again_at = now + BACKOFF[-1]

    def worked(self) -> None:
        """The server does what a master does."""
        self._failures = 0

    def _dead_at(self) -> float:
        dead = self.beat.dead_at()
        return max(self._spared, dead if self.ready else min(dead, self._began + self.timeout))

    def _ponged(self, reply: Any, now: float) -> None:
        if reply is not BROKEN and not isinstance(reply, Failure):
            self.worked()

    def _subscribe(self) -> None:
        self.channel = fresh_channel()
        if self.place is None:
            self.out += encode(("SUBSCRIBE", self.channel))
        elif tag := self.place():
            self.channel += f":{{{tag}}}"
            self.out += encode(("SSUBSCRIBE", self.channel))
        else:
            self.drop = "the node serves no slot"

    def subscribe_again(self, now: float) -> None:
        """The slot of the channel has gone to another node: by another channel."""
        if self.homeless:
            self.homeless, self._began = False, now
            self._subscribe()

    def _pushed(self, items: list[bytes], now: float) -> None:
        kind = items[0]
        if kind in (b"subscribe", b"ssubscribe"):
            self._subscribed(now)
        elif kind == b"sunsubscribe" and self.ready:
            self.ready, self.homeless, self._began = False, True, now
            self._unsubscribed(now)
        elif kind in (b"message", b"smessage") and len(items) == 3:
            word, tag, *rest = items[2].decode(errors="replace").split(" ", 2)
            self._notified(word, tag, rest[0] if rest else "", now)

    def _subscribed(self, now: float) -> None:
        self.ready = True
        while self.pending_commands:
            call = self.pending_commands.pop(0)
            if call.until > now:
                self.send(call, now)
        self._open(now)

    # What a session makes of it.

    def _open(self, now: float) -> None: ...

    def _broken(self, now: float) -> None: ...

    def _unsubscribed(self, now: float) -> None: ...

    def _tidied(self, call: Call, reply: Any, now: float) -> None: ...

    def _notified(self, word: str, tag: str, rest: str, now: float) -> None: ...

    def _never(self, code: str, text: str, now: float) -> None: ...

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
from ._backend import (
    HEARTBEAT,
    PROBE,
    Backend,
    Search,
    Words,
    is_gone,
    is_ours,
    of_channel,
    plain_failure,
    said,
    search,
    unknown_command,
)
from ._beat import PATIENCE, Beat
from ._clock import Timers
from ._resp import Failure, Parser, Push, encode
from ._states import Call, Pending

# The server is no master now: the address may soon lead to one.
NO_MASTER = ("READONLY", "MASTERDOWN", "LOADING")
BACKOFF = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0)  # s, before each attempt to reconnect
# s: later than that is only a process that was paused; and so long is read what has come meanwhile.
LATE = 0.1
FIND = 60.0  # s: without the module the server is asked again whether it has it: to load it drops no connection
# How often a command is sent again for that what it calls was not there: somebody may flush it all the time.
TRIES = 100
BROKEN = object()  # in the place of a reply: the connection broke before it came
SETNAME = ("CLIENT", "SETNAME", NAME)  # so that CLIENT LIST says what it is


class Protocol:
    def __init__(
        self,
        timeout: float,
        place: Callable[[], str | None] | None = None,
        need: Backend | None = None,
        patience: int | None = PATIENCE,
    ) -> None:
        self.timeout = timeout
        self.place = place  # in a cluster: a hash tag in a slot of this node, for the channel
        self.need = need  # nothing else will do
        self.backend: Backend | None = None  # what the server has; None: not known
        self.on_backend: Callable[[], object] = list
        self.waiting: list[Call] | None = None  # for it to be found out anew, on the same connection
        self._search: Search | None = None
        self._find_at = math.inf
        self.out = bytearray()
        self.calls: deque[Callable[[], object]] = deque()
        self.timers = Timers()
        self.patient = patience is not None  # the server is to know for how long we may be silent
        self.beats = False  # it takes that, on this connection
        self.beat = Beat(patience or 0)
        self.connecting = False
        self.connected = False
        self.ready = False  # subscribed too
        self.homeless = False  # the slot of the channel is another node's now
        self.closed = False
        self.leave_by = math.inf  # once it is closed: what was not sent by then is not sent
        self.drop: str | None = None  # why the connection is to be closed
        self.trouble = ""  # why there was no connection the last time
        self.channel = ""
        self._subscribed = False
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
        self._say(Call(SETNAME, lambda reply, now: None), now)  # who may not name it has no name
        self._subscribe(now)
        self._find(now)

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
            elif isinstance(reply, Failure) and reply.code in NO_MASTER:
                self.drop = f"{reply.code} {reply.text}"
            else:
                call = self.flight.popleft()
                self.beat.proved(call.sent)
                if isinstance(reply, Failure) and self.ready:
                    if is_ours(call.words) and is_gone(reply) and call.tries < TRIES:
                        self._lacking(call, now)
                        continue
                    reply = plain_failure(reply)
                (call.answered or partial(self._tidied, call))(reply, now)

    def ended(self, now: float, why: str) -> None:
        """The connection is closed, or there was none. What an exception has left of it is
        done when it is called again."""
        self.connecting = self.connected = self.ready = self.homeless = self.beats = False
        waiting, self.waiting, self.backend, self._search = deque(self.waiting or ()), None, None, None
        self.trouble = self.drop or why
        self.drop = None
        self.out.clear()
        for calls in (self.flight, waiting, self.refused):
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
        if now > self._due:
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
        elif (self.ready or self.beats) and now >= self.beat.ask_at():
            self._show_life(now)
        if self.ready and now >= self._find_at:
            self._find_at = now + FIND
            self._say(Call(PROBE, self._looked), now)
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
            if self.ready or self.beats:
                due = min(due, self.beat.ask_at())
            if self.ready:
                due = min(due, self._find_at)
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
        if self.waiting is not None:
            self.waiting.append(call)
        elif self.ready:
            self._say(call, now)
        elif call.again is not None:
            self.add_pending(call, now)

    def _say(self, call: Call, now: float) -> None:
        call.sent = now
        self.flight.append(call)
        self.out += encode(self.said(call.words))

    def said(self, words: Words) -> Words:
        return said(words, self.backend, self.place is not None)

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

    def _show_life(self, now: float) -> None:
        """Ours to the server; its answer shows the server's."""
        self.beat.asked(now)
        if self.beats:
            self._say(Call((HEARTBEAT, self.beat.patience()), self._beaten), now)
        else:
            self._say(Call(("PING",), self._ponged), now)

    def _beaten(self, reply: Any, now: float) -> None:
        if self.beats and isinstance(reply, Failure) and (reply.code == "NOPERM" or unknown_command(reply)):
            self.beats = False  # an older module, or a user who may not
            self.beat.unsaid()
            self._show_life(now)
        else:
            self._ponged(reply, now)

    def _ponged(self, reply: Any, now: float) -> None:
        if reply is not BROKEN and not isinstance(reply, Failure):
            self.worked()

    def _subscribe(self, now: float) -> None:
        self.channel, self._subscribed = fresh_channel(), False
        if self.place:
            tag = self.place()
            if not tag:
                self.drop = "the node serves no slot"
                return
            self.channel += f":{{{tag}}}"
        self.listen(self.channel.encode(), self._listens, now)

    def listen(self, channel: bytes, then: Callable[[Any, float], object], now: float) -> None:
        self._say(Call(("SSUBSCRIBE" if self.place else "SUBSCRIBE", channel), then), now)

    def leave(self, channel: bytes, now: float) -> None:
        self._say(Call(("SUNSUBSCRIBE" if self.place else "UNSUBSCRIBE", channel), lambda reply, now: None), now)

    def _listens(self, reply: Any, now: float) -> None:
        if isinstance(reply, Failure):
            self._refused(of_channel(reply, self.place is not None), now)
        elif reply is not BROKEN:
            self._subscribed = True
            self._get_ready(now)

    def _refused(self, why: Failure, now: float) -> None:
        self.drop = f"{why.code} {why.text}"
        self._never(why.code, why.text, now)

    # What the server has.

    def _find(self, now: float) -> None:
        self._search = search(self.place is None, self.need)
        self._searched(None, now)

    def _searched(self, reply: Any, now: float) -> None:
        if reply is BROKEN or self._search is None:
            return
        try:
            words = self._search.send(reply)
            self._say(Call(words, self._searched), now)
        except StopIteration as end:
            self._search = None
            if isinstance(end.value, Failure):
                self._refused(end.value, now)
            else:
                self._found(end.value, now)

    def _found(self, backend: Backend, now: float) -> None:
        was, self.backend = self.backend, backend
        waiting, self.waiting = self.waiting, None
        self._find_at = math.inf if backend == "module" else now + FIND
        if backend != was:
            self.calls.append(self.on_backend)
            self.beat.unsaid()
            self.beats = self.patient and backend == "module"
            if self.beats:  # before anything is held
                self._show_life(now)
        if waiting is None:
            self._get_ready(now)
        elif backend == was:
            for call in waiting:
                self.send(call, now)
        else:  # as on a new connection, but that nothing is lost
            self._going_over(now)
            for call in waiting:
                if call.answered:
                    call.answered(BROKEN, now)
                if call.again is not None:
                    call.words = call.again
                    self.send(call, now)
            self._open(now)

    def _looked(self, reply: Any, now: float) -> None:
        if isinstance(reply, Failure) or (reply is not BROKEN and reply and reply[0]):
            self.find_again(now)

    def find_again(self, now: float) -> None:
        """What is to be sent meanwhile waits."""
        if self.ready and self.waiting is None:
            self.waiting = []
            self._find(now)

    def _lacking(self, call: Call, now: float) -> None:
        """What it called is not there any more. So it is found out what is there, and what was sent is sent once
        more, in its order."""
        call.tries += 1
        self.find_again(now)
        assert self.waiting is not None
        self.waiting.append(call)

    def subscribe_again(self, now: float) -> None:
        """The slot of the channel has gone to another node: by another channel."""
        if self.homeless:
            self.homeless, self._began = False, now
            self._subscribe(now)

    def _pushed(self, items: list[bytes], now: float) -> None:
        kind = items[0]
        if self.flight and kind.endswith(b"subscribe") and self._asked(kind, items[1]):
            call = self.flight.popleft()
            self.beat.proved(call.sent)
            if call.answered:
                call.answered(None, now)
        elif kind == b"sunsubscribe" and items[1] != self.channel.encode():
            self._deaf(items[1], now)
        elif kind == b"sunsubscribe" and self.ready:
            self.ready, self.homeless, self._began = False, True, now
            self._unsubscribed(now)
        elif kind in (b"message", b"smessage") and len(items) == 3:
            if items[1] != self.channel.encode():
                self._heard(items[1], now)
                return
            word, _, rest = items[2].decode(errors="replace").partition(" ")  # anybody may say anything there
            tag, _, rest = rest.partition(" ")
            self._notified(word, tag, rest, now)

    def _asked(self, kind: bytes, channel: bytes) -> bool:
        """Whether that is the next reply."""
        words = self.flight[0].words
        return words[0] == kind.decode().upper() and words[1] == channel

    def _get_ready(self, now: float) -> None:
        if not self._subscribed or not self.backend:
            return
        self.ready = True
        while self.pending_commands:
            call = self.pending_commands.pop(0)
            if call.until > now:
                self.send(call, now)
        self._open(now)

    # What a session makes of it.

    def _open(self, now: float) -> None: ...

    def _broken(self, now: float) -> None: ...

    def _going_over(self, now: float) -> None: ...

    def _heard(self, channel: bytes, now: float) -> None: ...

    def _deaf(self, channel: bytes, now: float) -> None: ...

    def _unsubscribed(self, now: float) -> None: ...

    def _tidied(self, call: Call, reply: Any, now: float) -> None: ...

    def _notified(self, word: str, tag: str, rest: str, now: float) -> None: ...

    def _never(self, code: str, text: str, now: float) -> None: ...

"""How a session waits where there is no module: by trying.

All waits of a session for the same stand in one line, of which the first one tries: when the server says that the lock is
free, when the lease in its way is over, and now and then, for a message can be lost. Who has waited for a moment, or comes where
others queue already, takes a place in the lock's queue on the server, so that nobody starves; then only the server's
message to that place has it try.
"""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from ._backend import channels, own_channel
from ._clock import Timer
from ._clock import now as clock
from ._protocol import BROKEN
from ._resp import Failure
from ._states import Call, Request

PATIENCE = 0.1  # s: until a wait takes a place in the queue, if nobody else has one
KEPT = 2000  # ms: for so long the server keeps a place that nobody asks for
PAUSE = 0.7  # s: between two tries, if there is no message, or no reply: it may have come before a release
PAUSE_IN_PLACE = 0.5  # s: also so that the place is kept
LEFT_OPEN = 5.0  # s: a key that was waited for will be again, and one does not subscribe anew each time


def vary(pause: float) -> float:
    return pause * random.uniform(0.8, 1.2)


class Line:
    def __init__(self, ask: Any, name: str) -> None:
        self.ask = ask
        self.name = name  # of its place
        self.waiting: dict[Request, float] = {}  # since when
        self.ahead = -1  # how many places are before its own; negative: it has none
        self.crowded = False  # others have places too, by the last reply
        self.trying: Call | None = None
        self.heard: set[bytes] = set()
        self.timer: Timer | None = None
        shared = ask.words[:1] in (("READ",), ("WRITE",))
        self.common = channels(ask.keys, shared)
        self.own = own_channel(ask.keys[0], name)

    @property
    def first(self) -> Request | None:
        return next(iter(self.waiting), None)


class Lines:
    def __init__(self, core: Any) -> None:
        self._core = core
        self._all: dict[Any, Line] = {}
        self._names: dict[Any, str] = {}  # of the places, which outlive a connection
        self._name, self._count = uuid.uuid4().hex, itertools.count(1)
        self._listeners: dict[bytes, set[Line]] = {}

    def clear(self) -> None:
        """The connection is gone, and with it what was to be heard on it. Who waits keeps its place."""
        for line in self._all.values():
            self._core.timers.cancel(line.timer)
            for request in line.waiting:
                request.line = None
        if not self._core.requests:
            self._names.clear()
        self._names.update((kind, line.name) for kind, line in self._all.items() if line.waiting)
        self._all.clear()
        self._listeners = {}

    def dissolve(self, now: float) -> None:
        """The server has a queue of its own from now on."""
        for channel in self._listeners:
            self._core.leave(channel, now)
        self.clear()

    def join(self, request: Request, now: float) -> None:
        kind = (request.ask.keys, request.ask.words)
        line = self._all.get(kind)
        if line is None:
            known = self._names.pop(kind, None)
            line = self._all[kind] = Line(request.ask, known or f"{self._name}:{next(self._count)}")
            line.crowded = known is not None  # it may have a place, which it keeps
        line.waiting[request] = now
        request.line = line
        if line.first is request:
            self._try(line, request, now)
        else:
            request.queue(self._core.calls)  # the first one's tries show that the server answers

    def leave(self, request: Request) -> None:
        line, request.line = request.line, None
        if not line:
            return
        if line.first is request:
            if line.trying and line.trying.words[-1] == KEPT:
                line.ahead = max(line.ahead, 0)  # it may have taken a place
            line.trying = None
            self._at(line, clock(), self._next)
        del line.waiting[request]

    def last_try(self, request: Request, now: float) -> None:
        """Its time is over: somebody else has it if the server says so once more."""
        self._try(request.line, request, now)

    def message(self, channel: bytes, now: float) -> None:
        # One that came while a try is under way was there before that try.
        for line in list(self._listeners.get(channel, ())):
            if line.first and not line.trying:
                self._try(line, line.first, now)

    def deaf(self, channel: bytes, now: float) -> None:
        """Its slot has gone to another node."""
        for line in self._listeners.pop(channel, ()):
            line.heard = line.heard - {channel}
            self._at(line, now, self._next)

    def _at(self, line: Line, when: float, what: Callable[[Line, float], None]) -> None:
        self._core.timers.cancel(line.timer)
        line.timer = self._core.timers.at(when, partial(what, line))

    def _next(self, line: Line, now: float) -> None:
        if line.first:
            if not line.trying:
                self._try(line, line.first, now)
            return
        if line.ahead >= 0:
            line.ahead = -1
            ask = line.ask
            self._core.send(Call((*ask.cancel(line.name), "PLACE", line.name), lambda reply, now: None), now)
        if line.heard:
            self._at(line, now + LEFT_OPEN, self._shut)
        else:
            self._shut(line, now)

    def _shut(self, line: Line, now: float) -> None:
        self._hear(line, set(), now)
        self._all.pop((line.ask.keys, line.ask.words), None)

    def _try(self, line: Line, request: Request, now: float) -> None:
        is_first = line.first is request
        place: tuple[Any, ...] = ()
        if is_first:
            self._core.timers.cancel(line.timer)
            stays = line.ahead >= 0 or line.crowded or line.waiting[request] + PATIENCE <= now
            stays = stays and now < request.until
            place = ("PLACE", line.name, KEPT if stays else 0)

        def answered(reply: Any, now: float) -> None:
            self._answered(line, request, call, reply, now)

        call = Call((*request.ask.attempt(request.owner), *place), answered)
        if is_first:
            line.trying = call
            self._at(line, now + vary(PAUSE), self._late)
        request.sent = now
        self._core.send(call, now)

    def _late(self, line: Line, now: float) -> None:
        """There is no reply."""
        if line.first:
            self._try(line, line.first, now)

    def _answered(self, line: Line, request: Request, call: Call, reply: Any, now: float) -> None:
        if reply is BROKEN:
            return
        was_first = line.trying is call
        if was_first:
            line.trying = None
        elif call.words[-3:-2] == ("PLACE",) and not isinstance(reply, int):
            return  # a later try of the line says what counts
        core = self._core
        if request.line is not line:
            self._unwanted(request, reply, now)
        elif isinstance(reply, Failure):
            core._failed(request, reply.code, reply.text, now)
        elif isinstance(reply, int):
            line.ahead = -1 if was_first else line.ahead
            request.sent = call.sent
            core.worked()
            core._granted(request, reply, now, waited=False)
        else:
            request.queue(self._core.calls)
            core.worked()
            left, ahead = reply or (-1, -1)
            if was_first:
                line.ahead, line.crowded = ahead, ahead < -1 or ahead > 0
            if call.sent >= request.until:
                core._end(request, core._not_acquired(request))
            elif now >= request.until:
                self.last_try(request, now)
            elif was_first:
                self._refused(line, request, left, now)

    def _unwanted(self, request: Request, reply: Any, now: float) -> None:
        """A grant for one that was given up, or has gone elsewhere, is released."""
        held = request.held
        elsewhere = request.home is not self._core
        if isinstance(reply, int) and (elsewhere or (request.finished and (not held or held.over or held.reason))):
            self._core._call_off(request, now)

    def _refused(self, line: Line, request: Request, left: int, now: float) -> None:
        wanted = {line.own} if line.ahead >= 0 or line.crowded else {line.own, *line.common}
        # The lock may have become free before it was listened for; or it has no place yet, and is to have one.
        if self._hear(line, wanted, now) or (line.crowded and line.ahead < 0):
            self._try(line, request, now)
            return
        pause = vary(PAUSE if line.ahead < 0 else PAUSE_IN_PLACE)
        impatient = line.waiting[request] + PATIENCE - now
        if line.ahead < 0 and impatient > 0:
            pause = min(pause, impatient)
            if line.ask.words[:1] == ("LIMIT",):  # permits that come back are told to places alone
                pause = min(pause, random.uniform(0.05, 0.1))
        if left >= 0 and line.ahead <= 0:
            pause = min(pause, max(left, 1) / 1000)
        self._at(line, now + pause, self._next)

    def _hear(self, line: Line, wanted: set[bytes], now: float) -> bool:
        """Whether something is heard from now on that was not before."""
        core, fresh = self._core, wanted - line.heard
        for channel in line.heard - wanted:
            self._listeners[channel].discard(line)
            if not self._listeners[channel]:
                del self._listeners[channel]
                core.leave(channel, now)
        for channel in fresh:
            lines = self._listeners.setdefault(channel, set())
            if not lines:
                core.listen(channel, partial(self._listens, channel), now)
            lines.add(line)
        line.heard = wanted
        return bool(fresh)

    def _listens(self, channel: bytes, reply: Any, now: float) -> None:
        """Of a slot that is elsewhere the next try says so."""
        if isinstance(reply, Failure) and reply.code == "NOPERM":
            for line in self._listeners.pop(channel, ()):
                line.heard = line.heard - {channel}
                for request in list(line.waiting):
                    self._core._failed(request, reply.code, reply.text, now)

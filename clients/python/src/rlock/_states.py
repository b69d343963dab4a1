"""What a session keeps of each request, hold and job. No I/O, no locks of its own."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable
from typing import Any

from ._ask import Ask, fresh_owner
from ._clock import Timer
from ._resp import Word
from .errors import HeldByJob


def nothing() -> None:
    pass


# What a call returns from which nothing follows for any session.
ENOUGH = object()


class Unique:
    """There is one of it: what became of a copy would become of it too."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{type(self).__name__} of rlock can be neither copied nor sent to another process")


class Pending:
    """Something that the program waits for. `done` is called when it is over."""

    __slots__ = ("begun", "done", "error", "finished", "timer")

    def __init__(self) -> None:
        self.begun = False
        self.finished = False
        self.error: Exception | None = None
        self.done: Callable[[], object] = nothing
        self.timer: Timer | None = None


class JobState:
    """One owner, and what it holds or waits for: at most once for each key."""

    __slots__ = ("ending", "given", "keys", "owner", "pid")

    def __init__(self, owner: str = "") -> None:
        """Without one it is drawn at the first use: an image of a process that is started twice may
        have the job in it already."""
        self.pid = os.getpid()
        self.owner = owner
        self.given = bool(owner)
        self.keys: dict[bytes, Request] = {}
        self.ending: dict[bytes, list[Call]] = {}  # said, and not taken by the server yet

    def here(self) -> None:
        """In a child of a fork it is another job: the parent goes on with the owner."""
        if self.pid != os.getpid() or not self.owner:
            self.pid, self.owner, self.keys, self.ending = os.getpid(), fresh_owner(), {}, {}

    def take(self, request: Request) -> None:
        self.here()
        for key in request.ask.keys:
            if self.keys.setdefault(key, request) is not request:
                self.give(request)
                raise HeldByJob(f"{key.decode(errors='replace')} is held, or waited for, by the same job")
        request.owner = self.owner

    def give(self, request: Request) -> None:
        for key in request.ask.keys:
            if self.keys.get(key) is request:
                del self.keys[key]

    def ends(self, call: Call, now: float) -> None:
        """It ends what the owner has of its keys, or waits for."""
        for key in call.ends:
            self.ending[key] = [*(other for other in self.ending.get(key, ()) if other.until > now), call]

    def ended(self, call: Call) -> list[Request]:
        """The server has taken it; who may have waited for that."""
        for key in call.ends:
            left = [other for other in self.ending.pop(key, ()) if other is not call]
            if left:
                self.ending[key] = left
        return [self.keys[key] for key in call.ends if key in self.keys]

    def blocked(self, keys: tuple[bytes, ...], now: float) -> float:
        """Until when the server may know of an older hold or wait of the owner; 0: it does not. It would take
        the next request for that one, and what ends that one would end the next, with nobody notified."""
        until = 0.0
        for key in keys:
            for call in self.ending.get(key, ()):
                until = max(until, call.until)
        return until if until > now else 0.0


class Request(Pending):
    """One acquisition under way; `held` is what it became."""

    __slots__ = (
        *("ask", "before", "behind", "held", "hint", "home", "job", "last", "line", "owner"),
        *("queued", "sent", "stood", "tag", "until"),
    )

    def __init__(self, ask: Ask, job: JobState | None = None) -> None:
        super().__init__()
        self.ask = ask
        self.job = job
        self.owner = job.owner if job and job.owner else fresh_owner()
        self.tag: int | None = None  # on this connection
        self.before = False  # it was asked on one that is gone
        self.queued = False  # on this connection the server has said so
        self.stood: Callable[[], object] | None = None  # called when it does
        self.sent = 0.0  # 0: never
        self.until = 0.0  # the end of its wait
        self.last = 0.0  # when it is given up for want of a connection
        self.held: Held | None = None
        self.hint: Hint | None = None  # the grant is to say whether somebody waits
        self.behind: tuple[Any, Pending] | None = None  # what has to come first, and the session that has sent it
        self.line: Any = None  # without the module: where it waits
        self.home: Any = None  # the session that it is with; None: not yet, or just moving

    def begin(self, now: float, timeout: float) -> None:
        if self.job:
            self.job.take(self)
        self.until = now + self.ask.wait
        self.last = max(self.until, now + timeout)

    def end(self, error: Exception | None) -> None:
        self.finished, self.error = True, error
        if self.job:
            self.job.give(self)
        done, self.done = self.done, nothing
        done()

    def queue(self, calls: deque[Callable[[], object]]) -> None:
        self.queued = True
        if self.stood:
            calls.append(self.stood)

    def left(self) -> Ask:
        """Of a hold that was lost: the keys that no later request of its job, which has the same owner,
        has taken or waits for."""
        if not self.job:
            return self.ask
        ours = tuple(key for key in self.ask.keys if self.job.keys.get(key, self) is self)
        return self.ask._replace(keys=ours)

    def give_up(self, now: float) -> None:
        """Nobody wants it any more: granted or not, the server is notified."""
        request = self.held.request if self.held else self
        if request.home:
            request.home.give_up(request, now)
        elif not request.finished:
            request.end(None)


class Hint:
    """Whether a hold is wanted, once the program has asked."""

    __slots__ = ("said", "waiting")

    def __init__(self) -> None:
        self.said = -math.inf  # when the server did, the last time
        self.waiting: dict[Callable[[], object], None] = {}  # for that, or for the end of the hold


class Held:
    """A hold, from its grant to its end."""

    __slots__ = (
        *("deadline", "ends", "given", "hint", "kept", "lease", "listeners", "more", "outlived", "over", "pace", "reason"),
        *("renewing", "request", "seen", "since", "stay", "tag", "timer", "token"),
    )

    def __init__(self, request: Request, token: int) -> None:
        self.request = request
        self.token = token
        self.tag = request.tag
        self.lease = request.ask.lease  # ms
        self.since = 0.0
        self.kept = False  # with watchdog, and nobody renews it but the session
        self.pace: Timer | None = None
        self.deadline: float | None = None  # without watchdog, or kept
        self.ends: float | None = None  # with `max`
        self.renewing: int | None = None  # ms: a renewal to this has no reply yet
        self.outlived = False  # the connection that took it is gone
        self.more: set[object] | None = None  # of `again`
        self.given = False  # the program has it
        self.over = False  # the program has released it
        self.reason: str | None = None  # why it was lost
        self.seen: str | None = None  # the same, by a program that looked before the session did
        self.listeners: list[Callable[[str], object]] | None = None  # who wants to know
        self.hint: Hint | None = None
        self.stay: Any = None  # of a sticky lock: whose uses go by it
        self.timer: Timer | None = None

    def lose(self, reason: str) -> None:
        """It is lost. That is known to the uses of a sticky lock before anything else is read."""
        self.reason = reason
        if self.stay:
            self.stay.until = 0.0

    def rings(self) -> list[Callable[[], object]]:
        """Of those who wait for it to be wanted."""
        return list(self.hint.waiting) if self.hint else []


class Call:
    """A command on its way. `again` is what is sent on the next connection if this one breaks."""

    __slots__ = ("again", "answered", "ends", "job", "lasts", "sent", "tries", "until", "words")

    def __init__(
        self,
        words: tuple[Word, ...],
        answered: Callable[[Any, float], object] | None,
        again: tuple[Word, ...] | None = None,
        until: float = 0.0,
        lasts: float = math.inf,
    ) -> None:
        self.words = words
        self.answered = answered  # None: whichever session has it by then sees to it
        self.again = again
        self.until = until  # afterwards there is nothing to retry
        self.lasts = lasts  # nor so long after the connection has ended
        self.sent = 0.0
        self.tries = 0  # what it called was not there
        self.job: JobState | None = None  # whose next request for these keys comes after it
        self.ends: tuple[bytes, ...] = ()

    def parted(self, now: float) -> None:
        """There is no connection any more that keeps alive what it is about."""
        self.until = min(self.until, now + self.lasts)

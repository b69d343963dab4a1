"""What both faces have: sessions, and the one loop that runs them.

Everything that a session or a `Majority` decides is a step of its loop, which runs one after
the other and waits for nobody. A program's call puts a step in the loop's queue (`post`), from
wherever it comes, and waits for what the step has finished; it touches nothing itself.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ._acks import Acker, Batch
from ._backend import LESS, WITHOUT, Backend
from ._clock import Timers, now
from ._connect import refusal
from ._core import Core
from ._states import ENOUGH, Pending

log = logging.getLogger("rlock")

_said: set[Backend | None] = set()  # in the log of this process

Step = Callable[[float], object]
Then = Callable[[Any, Any, float], object]  # a result, or an error, and when


def backend_of(all_of_them: Iterable[Backend | None]) -> Backend | None:
    """Of several servers what the one with the least has."""
    known = [backend for backend in all_of_them if backend]
    return max(known, key=LESS.index, default=None)


class BaseSession:
    """A connection to one server, and the `Core` that says what goes over it."""

    def __init__(self, loop: Any, make: Callable[[], Any], core: Core) -> None:
        self.loop, self.make, self.core = loop, make, core
        self.acker = Acker(self)
        self.said: Backend | None = None  # what its server had the last time
        core.on_backend = self._log_backend
        core.on_unsure = self.acker.wanted
        self.connection: Any = None

    def settle(self, at: float) -> bool:
        """Does what the core wants done; False: that was nothing for others."""
        core = self.core
        self.write()  # first of all: the server is at work meanwhile
        core.tick(at)
        self.write()
        if core.drop or (core.closed and not (core.pending_commands or (core.ready and (core.flight or core.out)))):
            self._part(at)
        called = False
        while core.calls:
            if core.calls.popleft()() is not ENOUGH:
                called = True
        if core.wants_connection(at):
            core.connecting = True
            self.connect()
        return called

    @property
    def alive(self) -> bool:
        core = self.core
        return core.connected or core.connecting or core.busy

    @property
    def leaving(self) -> bool:
        """After `close`: it still has something to bring to an end."""
        return self.connection is not None or self.core.busy

    def made(self, connection: Any, error: BaseException | None, at: float) -> None:
        """A connection; or there was none."""
        core = self.core
        if error is None:
            self.connection = connection
            self.begin()
            core.began(at)
            return
        if connection:
            self.shut(connection)
        why = refusal(error)
        if why:
            core._never(*why, at)
        core.ended(at, str(error) or type(error).__name__)

    def _part(self, at: float) -> None:
        if self.connection:
            self.shut(self.connection)
            self.connection = None
        if self.core.closed:
            self.acker.close()
        if self.core.connected or self.core.drop:
            self.core.ended(at, "")

    def _log_backend(self) -> None:
        """Once for each change in a process, of however many servers."""
        was, self.said = self.said, self.core.backend
        if self.said == "module":
            _said.discard(was)
        elif self.said not in _said:
            _said.add(self.said)
            self.loop.later(partial(log.warning, WITHOUT, self.said))

    # Of the face.

    def connect(self) -> None:
        raise NotImplementedError

    def begin(self) -> None: ...

    def write(self) -> None:
        raise NotImplementedError

    def shut(self, connection: Any) -> None:
        raise NotImplementedError

    def asks(self, batch: Batch) -> Callable[[], Any]:
        raise NotImplementedError


class BaseLoop:
    def __init__(self) -> None:
        self.forked = False
        self.sessions: list[Any] = []
        self.timers = Timers()  # of those that are no session
        self._closing: list[Pending] = []
        self.stays: weakref.WeakSet[Any] = weakref.WeakSet()  # of sticky locks

    @property
    def backend(self) -> Backend | None:
        return backend_of(session.core.backend for session in self.sessions)

    def settle(self) -> None:
        """Until nothing follows from what was done."""
        at = now()
        self.timers.run(at)
        while any([session.settle(at) for session in self.sessions]):
            at = now()
        if self._closing and not any([session.leaving for session in self.sessions]):
            closing, self._closing = self._closing, []
            for pending in closing:
                pending.finished = True
                pending.done()

    def fault(self, error: BaseException) -> None:
        """Something was left half done, perhaps the end of a connection: none is gone on with. The
        holds are lost, and nobody hangs."""
        for session in self.sessions:
            if not session.core.connecting:
                session.core.drop = session.core.drop or f"a fault in rlock: {error!r}"

    def next_time(self) -> float:
        due = self.timers.next()
        for session in self.sessions:
            due = min(due, session.core.next_time())
        return due

    def close(self, pending: Pending, at: float) -> None:
        """Every hold is released, and every wait ended; `pending` when the servers have answered."""
        for session in self.sessions:
            session.core.close(at)
        for stay in list(self.stays):
            stay.locks_closed(at)
        self._closing.append(pending)

"""A session of one event loop: replies are taken as they come, a timer beats, who calls sends.
A task of its own it has only while it connects."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from .._clock import now
from .._connect import refusal
from .._core import Core
from ._acker import Acker
from ._at_end import AtEnd

T = TypeVar("T")
log = logging.getLogger("rlock")


class Replies(asyncio.Protocol):
    """What the server sends goes to the session at once: no task has to awake for it first."""

    def __init__(self, session: Session, connection: Any) -> None:
        self._session = session
        self._connection = connection

    def data_received(self, data: bytes) -> None:
        if self._connection is self._session._connection:  # else given up meanwhile
            self._session.act(lambda core, at: core.receive(data, at))

    def connection_lost(self, error: Exception | None) -> None:
        def step(core: Core, at: float) -> None:
            core.drop = str(error or "the server closed the connection")

        if self._connection is self._session._connection:
            self._session.act(step)


class Session:
    def __init__(self, make: Callable[[], Any], core: Core) -> None:
        self.core = core
        core.face = self
        self.forked = False
        self.loop = asyncio.get_running_loop()
        self.make = make
        self.acker = Acker(self)
        core.on_unsure = self.acker.wanted
        self._connection: Any = None
        self._connecting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._ended = self.loop.create_future()
        self._at_end: AtEnd | None = None  # while there is a connection
        _sessions.add(self)

    def act(self, step: Callable[[Core, float], T]) -> T:
        """Does it to the core, sends what that gave, and tells whom it concerns."""
        at = now()
        result = step(self.core, at)
        if self._connection and self.core.out and not self.core.drop:
            self._connection._writer.write(bytes(self.core.out))
            self.core.out.clear()
        if self.core.drop or self._over():
            self._part(at)
        calls, self.core.calls = self.core.calls, []
        for call in calls:
            try:
                call()
            except Exception:
                log.exception("in a callback of a lost hold")
        self._arm()
        return result

    def task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self.loop.create_task(work, name="rlock")

    def waker(self) -> tuple[asyncio.Future[None], Callable[[], None]]:
        """What to wait for, and what ends that."""
        future: asyncio.Future[None] = self.loop.create_future()

        def done() -> None:
            if not future.done():
                future.set_result(None)

        return future, done

    async def close(self, wait: float) -> None:
        self.act(lambda core, at: core.close(at))
        if not self._ended.done():
            await asyncio.wait([self._ended], timeout=wait)

    def close_soon(self) -> None:
        """From wherever."""
        if not self.loop.is_closed() and not self.forked:
            self.loop.call_soon_threadsafe(lambda: self.act(lambda core, at: core.close(at)))

    # Time.

    def _arm(self) -> None:
        core = self.core
        if core.wants_connection(now()):
            core.connecting = True
            self._connecting = self.task(self._connect())
        due = math.inf if self._ended.done() else core.next_time()
        if due == math.inf or (self._timer and self._due <= due):
            return  # one that comes too early does no harm, and costs less than a new one
        if self._timer:
            self._timer.cancel()
        self._due = due
        delay = min(max(0.0, due - now()) + 0.0005, 3600.0)
        self._timer = self.loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.act(lambda core, at: core.tick(at))

    # The connection.

    def _over(self) -> bool:
        core = self.core
        return core.closed and not (core.ready and core.flight)

    async def _connect(self) -> None:
        connection = self.make()
        error: BaseException | None = None
        try:
            await connection.connect()
        except BaseException as caught:
            error = caught

        def step(core: Core, at: float) -> None:
            self._connecting = None
            if error is None:
                self._connection = connection
                self._at_end = AtEnd(lambda: self.close(core.timeout))
                connection._writer.transport.set_protocol(Replies(self, connection))
                core.began(at)
            else:
                self._abort(connection)
                why = refusal(error)
                if why:
                    core._never(*why, at)
                core.ended(at, str(error))

        self.act(step)
        if isinstance(error, asyncio.CancelledError):
            raise error

    def _part(self, at: float) -> None:
        connection, self._connection = self._connection, None
        if connection:
            self._abort(connection)
        if self._at_end:
            self._at_end.cancel()
        self.core.ended(at, "")
        if self.core.closed and not self._ended.done():
            self._ended.set_result(None)
            self.acker.close()
            for one in (self._connecting, self._timer):
                if one:
                    one.cancel()

    def _abort(self, connection: Any) -> None:
        if connection._writer and not self.loop.is_closed():
            connection._writer.transport.abort()
        connection._reader = connection._writer = None

    def _in_child(self) -> None:
        """The child's copy of the socket is closed; the loop it belonged to is not touched,
        for what the child does to it the parent would feel."""
        self.forked = True
        self.core.forked()
        if self._at_end:
            self._at_end.cancel()
        self.core.calls.clear()
        for connection in (self._connection, self.acker.connection):
            if connection and connection._writer:
                raw = connection._writer.get_extra_info("socket")
                nowhere = os.open(os.devnull, os.O_RDWR)
                os.dup2(nowhere, raw.fileno(), inheritable=False)
                os.close(nowhere)


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _after_in_child() -> None:
    for session in list(_sessions):
        session._in_child()
        _sessions.discard(session)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_in_child)

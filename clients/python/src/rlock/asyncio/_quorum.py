"""Locks by a majority of several servers, for tasks."""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from .._ask import Duration, Key, seconds
from .._bench import Bench
from .._clock import now
from .._quorum import BaseQuorum
from .._seat import SeatCore
from ..errors import ConnectionError
from ._hold import Hold, Scope, taken
from ._router import Router


class TaskBench(Bench):
    _timer: asyncio.TimerHandle | None = None
    _due = math.inf

    def waker(self) -> tuple[asyncio.Future[None], Callable[[], None]]:
        waker: tuple[asyncio.Future[None], Callable[[], None]] = self.sessions[0].waker()
        return waker

    def _arm(self, due: float) -> None:
        if due == self._due:
            return
        if self._timer:
            self._timer.cancel()
        self._timer, self._due = None, due
        loop = self.sessions[0].loop
        if due < math.inf and not loop.is_closed():
            self._timer = loop.call_later(min(max(0.0, due - now()) + 0.0005, 3600.0), self._ring)

    def _ring(self) -> None:
        self._due = math.inf
        self.tick()


class Quorum(BaseQuorum):
    """Locks that are held by a majority of several servers, which know nothing of each other.

    clients: a `redis.asyncio.Redis` for each server, an odd number of them. All programs that
        share a lock name the same servers, in the same order, and never take it at one of them
        alone.
    timeout: how long to connect for, and to wait for an answer, in seconds or a `timedelta`.
    """

    def __init__(self, clients: Iterable[Any], *, timeout: Duration = 2) -> None:
        self._timeout = seconds(timeout, "timeout")
        self._routers = [Router(client, self._timeout, SeatCore) for client in self._checked(clients)]
        self._closed = False
        weakref.finalize(self, _abandon, self._routers).atexit = False

    async def acquire(self, key: Key, *, wait: Duration | None = None, lease: Duration = 10) -> Hold:
        """Takes the lock at a majority; `hold.token` is greater than all before. The client
        renews it every third of `lease`; it is lost when no majority is sure of it.

        Raises `NotAcquired`, `Refused`, and `ConnectionError` where no majority can be reached.
        """
        wanted = self._wanted(key, wait, lease)
        if self._closed:
            raise ConnectionError("the locks are closed")
        bench = TaskBench([await router.session(b"") for router in self._routers], self._timeout)
        future, done = bench.waker()
        request = bench.act(lambda core, now: core.ask(wanted, done, now))
        held = await taken(request, future, lambda: bench.act(lambda core, now: core.give_up(now)))
        return Hold(held, bench, self)

    def hold(self, key: Key, *, wait: Duration | None = None, lease: Duration = 10) -> Scope:
        """`async with quorum.hold("jobs", wait=10) as hold:`; like `acquire`, and released at the
        end. When the hold is lost the body is cancelled, and `Lost` raised."""
        return Scope(lambda: self.acquire(key, wait=wait, lease=lease))

    async def close(self) -> None:
        """Releases every hold, ends every wait, closes the connections."""
        self._closed = True
        await asyncio.gather(*(router.close(self._timeout) for router in self._routers))

    async def __aenter__(self) -> Quorum:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _abandon(routers: list[Router]) -> None:
    for router in routers:
        router.abandon()

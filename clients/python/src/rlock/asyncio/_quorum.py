"""Locks by a majority of several servers, for tasks."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from functools import partial
from types import TracebackType
from typing import Literal

import redis.asyncio

from .._ask import Duration, Key, socket_time
from .._connect import needed
from .._quorum import BaseQuorum, Servers
from .._states import Request
from ._hold import Hold, Scope, taken
from ._locks import Loops


class Quorum(BaseQuorum):
    """Locks that are held by a majority of several servers, which know nothing of each other.

    clients: a `redis.asyncio.Redis` for each server, an odd number of them. All programs that
        share a lock name the same servers, in the same order, and never take it at one of them
        alone.
    timeout: how long to connect for, and to wait for an answer, in seconds or a `timedelta`.
    backend: "module": a server without the module is refused.
    """

    def __init__(
        self, clients: Iterable[redis.asyncio.Redis], *, timeout: Duration = 2, backend: Literal["module"] | None = None
    ) -> None:
        named = self._checked(clients, redis.asyncio.Redis, redis.asyncio.RedisCluster, "rlock.Quorum")
        limit = socket_time(timeout, "timeout")
        self._loops = Loops(partial(Servers, named, limit, needed(backend)), limit)
        weakref.finalize(self, self._loops.abandon).atexit = False

    async def acquire(self, key: Key, *, wait: Duration | None = None, lease: Duration = 10) -> Hold:
        """Takes the lock at a majority; `hold.token` is greater than all before. The client
        renews it every third of `lease`; it is lost when no majority is sure of it.

        Raises `NotAcquired`, `Refused`, and `ConnectionError` where no majority can be reached.
        """
        wanted = self._wanted(key, wait, lease)
        loop, request = self._loops.here(), Request(wanted)
        return await taken(Hold(request, loop, self), lambda at: loop.router.ask(request, at))

    def hold(self, key: Key, *, wait: Duration | None = None, lease: Duration = 10) -> Scope:
        """`async with quorum.hold("jobs", wait=10) as hold:`; like `acquire`, and released at the
        end. When the hold is lost the body is cancelled, and `Lost` raised."""
        return Scope(lambda: self.acquire(key, wait=wait, lease=lease))

    async def close(self) -> None:
        """Releases every hold, ends every wait, closes the connections."""
        await self._loops.close()

    async def __aenter__(self) -> Quorum:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

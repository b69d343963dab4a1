"""What a program makes once: locks, and jobs that take several."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Union

import redis.asyncio

from .._ask import Ask, Duration, Key, Keys, Options, ask, patience_ms, socket_time
from .._backend import Backend
from .._connect import checked, maker, needed
from .._loop import backend_of
from .._router import ClusterRouter, Router
from .._slots import PAUSE
from .._states import JobState, Pending, Request, Unique
from ..errors import ConnectionError
from ._hold import Hold, Scope, taken
from ._loop import Loop
from ._sticky import Sticky

if TYPE_CHECKING:
    from typing_extensions import Unpack

Client = Union[redis.asyncio.Redis, redis.asyncio.RedisCluster]


class _Takes:
    """Takes locks: each with an owner of its own, or all with that of a job."""

    _job: JobState | None = None

    def _home(self) -> Locks:
        raise NotImplementedError

    async def acquire(self, key: Keys, **options: Unpack[Options]) -> Hold:
        """Takes the lock `key`, or several at once, all or none. See `Options`.

        A task that is cancelled while it waits leaves nothing behind in the server.

        Raises `NotAcquired`, `Deadlock`, `Refused`, `ConnectionError`, in a job `HeldByJob`.
        """
        return await self._take(ask(key, **options), self._job)

    async def _take(self, wanted: Ask, job: JobState | None) -> Hold:
        locks = self._home()
        loop, request = locks._loops.here(), Request(wanted, job)
        return await taken(Hold(request, loop, locks), lambda at: loop.router.ask(request, at))

    def hold(self, key: Keys, **options: Unpack[Options]) -> Scope:
        """`async with locks.hold("jobs", wait=10) as hold:`; like `acquire`, and released at the
        end. When the hold is lost the body is cancelled, and `Lost` raised."""
        return Scope(lambda: self.acquire(key, **options))


class Job(_Takes):
    """Work that takes several locks: they share an owner, by which deadlocks are seen."""

    def __init__(self, locks: Locks) -> None:
        self._locks = locks
        self._job = JobState()

    def _home(self) -> Locks:
        return self._locks

    @property
    def owner(self) -> str:
        assert self._job
        self._job.here()
        return self._job.owner


class Locks(_Takes, Unique):
    """The locks of one server, or of a cluster, for all tasks of an event loop. Make it once.

    client: a `redis.asyncio.Redis` or `RedisCluster`, whose address, TLS and credentials are used.
    timeout: how long to connect for, and to wait for an answer, in seconds or a `timedelta`.
    backend: "module": a server without the module is refused. Otherwise the locks are kept there by a function
        library or a script, which can do less.
    patience: for how long the event loop may stand still before holds with watchdog that somebody waits
        for are lost (`silent`); at least their longest lease. None: it may be so for ever. Only with the module.
    """

    def __init__(
        self,
        client: Client,
        *,
        timeout: Duration = 5,
        backend: Literal["module"] | None = None,
        patience: Duration | None = 30,
    ) -> None:
        checked(client, (redis.asyncio.Redis, redis.asyncio.RedisCluster), "rlock.asyncio.Locks", "rlock.Locks")
        limit = socket_time(timeout, "timeout")
        self._loops = Loops(_router(client, limit, needed(backend), patience_ms(patience)), limit)
        weakref.finalize(self, self._loops.abandon).atexit = False

    def _home(self) -> Locks:
        return self

    def job(self) -> Job:
        return Job(self)

    def sticky(self, key: Key, *, idle: Duration = 1, wait: Duration = 30, lease: Duration = 10) -> Sticky:
        """A lock for call sites that take it again and again: it stays with this process between its uses
        (`async with sticky.use() as use:`), for `idle` at most, until somebody else waits for it. So a use of a lock that is here
        already costs no message. Others see it held meanwhile. Make it once for each key.

        idle: at most 1 s. wait: that of each use, which has an end, for the server sees no cycle in which it waits."""
        return Sticky(self, key, idle, wait, lease)

    @property
    def backend(self) -> Backend | None:
        """What the server has: "module", "functions" or "script"; None: not known (yet)."""
        return self._loops.backend

    async def close(self) -> None:
        """Releases every hold, ends every wait, closes the connection. Waits for the server's answers
        to that, at most `timeout`. A hold that was released so is lost, with the reason `closed`."""
        await self._loops.close()

    async def __aenter__(self) -> Locks:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Loops:
    """A session belongs to its event loop: another one, or a child of a fork, has others. Neither
    is in the way of the other, in whichever thread it runs."""

    def __init__(self, begin: Callable[[Loop], Any], timeout: float) -> None:
        self._begin, self._timeout = begin, timeout
        self._all: deque[Loop] = deque()
        self._closed = False

    def here(self) -> Loop:
        running = asyncio.get_running_loop()
        loop = next((loop for loop in self._there() if loop.loop is running), None)
        if loop is None:
            loop = Loop()
            loop.router = self._begin(loop)
            self._all.append(loop)
        if self._closed:
            raise ConnectionError("the locks are closed")
        return loop

    def _there(self) -> list[Loop]:
        """Those that can do anything yet."""
        for loop in list(self._all):
            if loop.forked or loop.loop.is_closed():
                try:
                    self._all.remove(loop)
                except ValueError:
                    pass  # another thread did
        return list(self._all)

    async def close(self) -> None:
        self._closed = True
        futures = [(loop, loop.closing()) for loop in self._there()]
        waits = [future for loop, future in futures if loop.loop.is_running() and not future.done()]
        if waits:
            await asyncio.wait(waits, timeout=self._timeout)

    @property
    def backend(self) -> Backend | None:
        return backend_of(loop.backend for loop in self._there())

    def abandon(self) -> None:
        """Like close, from the garbage collector, wherever that runs: nobody waits."""
        for loop in self._there():
            loop.post(partial(loop.router.close, Pending()))


def _router(client: Any, timeout: float, need: Backend | None, patience: int | None) -> Callable[[Loop], Router]:
    if isinstance(client, redis.asyncio.RedisCluster):
        return partial(ClusterRouter, client, partial(_read_slots, client), timeout, need, patience=patience)
    return partial(Router, maker(client.connection_pool, timeout), timeout, need, patience=patience)


async def _read_slots(client: Any) -> None:
    await asyncio.sleep(PAUSE)
    if client.nodes_manager.slots_cache:
        await client.nodes_manager.initialize()
    else:
        await client.initialize()

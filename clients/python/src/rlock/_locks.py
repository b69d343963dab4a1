"""What a program makes once: locks, and jobs that take several."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Union

import redis

from ._ask import Ask, Duration, Key, Keys, Options, ask, patience_ms, socket_time
from ._backend import Backend
from ._connect import checked, maker, needed
from ._hold import Hold, Scope, taken
from ._router import ClusterRouter, Router
from ._slots import PAUSE
from ._states import JobState, Request, Unique
from ._sticky import Sticky
from ._threads import Loop, Loops
from .errors import ConnectionError

if TYPE_CHECKING:
    from typing_extensions import Unpack

Client = Union[redis.Redis, redis.RedisCluster]


class _Takes:
    """Takes locks: each with an owner of its own, or all with that of a job."""

    _job: JobState | None = None

    def _home(self) -> Locks:
        raise NotImplementedError

    def acquire(self, key: Keys, *, cancel: threading.Event | None = None, **options: Unpack[Options]) -> Hold:
        """Takes the lock `key`, or several at once, all or none. See `Options`.

        `cancel.set()` by another thread ends the wait (`Cancelled`): at once with an
        `rlock.Cancel`, within 0.1 s with any other `threading.Event`.

        Raises `NotAcquired`, `Deadlock`, `Refused`, `ConnectionError`, in a job `HeldByJob`.
        """
        return self._take(ask(key, **options), self._job, cancel)

    def _take(self, wanted: Ask, job: JobState | None, cancel: threading.Event | None = None) -> Hold:
        locks = self._home()
        loop, request = locks._loop(), Request(wanted, job)
        return taken(Hold(request, loop, locks), lambda at: loop.router.ask(request, at), cancel)

    def hold(self, key: Keys, *, cancel: threading.Event | None = None, **options: Unpack[Options]) -> Scope:
        """`with locks.hold("jobs", wait=10) as hold:`; like `acquire`, and released at the end,
        where `Lost` is raised if the hold was lost."""
        return Scope(lambda: self.acquire(key, cancel=cancel, **options))


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
    """The locks of one server, or of a cluster, for all threads of a process. Make it once.

    client: a `redis.Redis` or `redis.RedisCluster`, whose address, TLS and credentials are used.
    timeout: how long to connect for, and to wait for an answer, in seconds or a `timedelta`.
    backend: "module": a server without the module is refused. Otherwise the locks are kept there by a function
        library or a script, which can do less.
    patience: for how long the process may stand still before holds with watchdog that somebody waits
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
        checked(client, (redis.Redis, redis.RedisCluster), "Locks", "rlock.asyncio.Locks")
        self._timeout = limit = socket_time(timeout, "timeout")
        self._closed = False
        self._loops = Loops(_router(client, limit, needed(backend), patience_ms(patience)))
        weakref.finalize(self, self._loops.abandon).atexit = False

    def _home(self) -> Locks:
        return self

    def job(self) -> Job:
        return Job(self)

    def sticky(self, key: Key, *, idle: Duration = 1, wait: Duration = 30, lease: Duration = 10) -> Sticky:
        """A lock for call sites that take it again and again: it stays with this process between its uses
        (`with sticky.use() as use:`), for `idle` at most, until somebody else waits for it. So a use of a lock that is here
        already costs no message. Others see it held meanwhile. Make it once for each key.

        idle: at most 1 s. wait: that of each use, which has an end, for the server sees no cycle in which it waits."""
        return Sticky(self, key, idle, wait, lease)

    @property
    def backend(self) -> Backend | None:
        """What the server has: "module", "functions" or "script"; None: not known (yet)."""
        return self._loops.backend

    def close(self) -> None:
        """Releases every hold, ends every wait, closes the connection. Waits for the server's answers
        to that, at most `timeout`. A hold that was released so is lost, with the reason `closed`."""
        self._closed = True
        self._loops.close(self._timeout)

    def _loop(self) -> Loop:
        if self._closed:
            raise ConnectionError("the locks are closed")
        return self._loops.here()

    def __enter__(self) -> Locks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _router(client: Any, timeout: float, need: Backend | None, patience: int | None) -> Callable[[Loop], Router]:
    if isinstance(client, redis.RedisCluster):
        return partial(ClusterRouter, client, partial(_read_slots, client), timeout, need, patience=patience)
    return partial(Router, maker(client.connection_pool, timeout), timeout, need, patience=patience)


def _read_slots(client: Any) -> None:
    time.sleep(PAUSE)
    client.nodes_manager.initialize()

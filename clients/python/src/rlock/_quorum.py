"""Locks by a majority of several servers, for threads."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Literal

import redis

from ._ask import Ask, Duration, Key, ask, socket_time
from ._backend import Backend
from ._clock import Timer, now
from ._connect import checked, maker, needed
from ._hold import Hold, Scope, taken
from ._majority import Majority
from ._member import MemberCore
from ._router import Router
from ._states import Hint, Request, Unique
from ._threads import Loops
from .errors import ConnectionError


class Runner:
    """Runs a `Majority` in the loop: what it decides is done to the sessions, in order."""

    single = False

    def __init__(self, loop: Any, timeout: float) -> None:
        self._loop = loop
        self.core = Majority(loop.sessions, timeout, self.act)
        self._timer: Timer | None = None

    def act(self, step: Callable[[Majority, float], object]) -> None:
        core, at = self.core, now()
        core.tick(at)
        step(core, at)
        while core.todo:
            session, todo = core.todo.popleft()
            todo(session.core, at)
        calls, core.calls = core.calls, []
        for call in calls:
            call()
        self._loop.timers.cancel(self._timer)
        due = core.next_time()
        self._timer = None if due == math.inf else self._loop.timers.at(due, self._tick)

    def _tick(self, at: float) -> None:
        self.act(lambda core, at: None)

    # As of a session: what a hold wants of it, with all that follows.

    def give_up(self, request: Request, at: float) -> None:
        self.act(lambda core, at: core.give_up(request, at))

    def release(self, held: Any, at: float, pending: Any) -> None:
        self.act(lambda core, at: core.release(held, at, pending))

    def renew(self, held: Any, ms: int | None, at: float, pending: Any) -> None:
        self.act(lambda core, at: core.renew(held, ms, at, pending))

    def want(self, held: Any, at: float) -> None:
        """No server is asked: a hold by quorum is never wanted."""
        held.hint = held.hint or Hint()

    def due(self, held: Any, at: float) -> str | None:
        return self.core.due(held, at)

    def lose(self, held: Any, reason: str, at: float) -> None:
        self.act(lambda core, at: core.lose(held, reason, at))


class Servers(Router):
    """Several servers, and a `Runner` for each request."""

    def __init__(self, clients: list[Any], timeout: float, need: Backend | None, loop: Any) -> None:
        super().__init__(None, timeout, need, loop)
        for client in clients:
            loop.session(maker(client.connection_pool, timeout), MemberCore(timeout, need))

    def _place(self, request: Request, at: float) -> None:
        runner = Runner(self._loop, self.timeout)
        runner.act(lambda core, at: core.ask(request, at))
        request.home = runner


class BaseQuorum(Unique):
    """What both faces check alike."""

    @staticmethod
    def _checked(clients: Iterable[Any], kind: type, cluster: type, other: str) -> list[Any]:
        if not isinstance(clients, Iterable) or isinstance(clients, (kind, cluster)):
            raise TypeError(f"a quorum is given a list of clients, one for each server, not {clients!r}")
        clients = list(clients)
        if len(clients) > len({id(client) for client in clients}):
            raise ValueError("a quorum is of servers that know nothing of each other: one of them is given twice")
        if len(clients) % 2 == 0:
            raise ValueError("a quorum is of an odd number of servers")
        if any(isinstance(client, cluster) for client in clients):
            raise TypeError("a quorum is of single servers, not of clusters")
        for client in clients:
            checked(client, (kind,), "Quorum", other)
        return clients

    @staticmethod
    def _wanted(key: Key, wait: Duration | None, lease: Duration) -> Ask:
        if not isinstance(key, (str, bytes)):
            raise TypeError("a lock by quorum has one key")
        wanted = ask(key, wait=wait, lease=lease, watchdog=False)
        if wanted.lease < 100:
            raise ValueError("the lease of a quorum is at least 0.1 s")
        return wanted


class Quorum(BaseQuorum):
    """Locks that are held by a majority of several servers, which know nothing of each other.

    clients: a `redis.Redis` for each server, an odd number of them. All programs that share a
        lock name the same servers, in the same order, and never take it at one of them alone.
    timeout: how long to connect for, and to wait for an answer, in seconds or a `timedelta`.
    backend: "module": a server without the module is refused.
    """

    def __init__(
        self, clients: Iterable[redis.Redis], *, timeout: Duration = 2, backend: Literal["module"] | None = None
    ) -> None:
        named = self._checked(clients, redis.Redis, redis.RedisCluster, "rlock.asyncio.Quorum")
        self._timeout = limit = socket_time(timeout, "timeout")
        self._loops = Loops(partial(Servers, named, limit, needed(backend)))
        self._closed = False
        weakref.finalize(self, self._loops.abandon).atexit = False

    def acquire(
        self, key: Key, *, wait: Duration | None = None, lease: Duration = 10, cancel: threading.Event | None = None
    ) -> Hold:
        """Takes the lock at a majority; `hold.token` is greater than all before. The client
        renews it every third of `lease`; it is lost when no majority is sure of it.

        Raises `NotAcquired`, `Refused`, and `ConnectionError` where no majority can be reached.
        """
        wanted = self._wanted(key, wait, lease)
        if self._closed:
            raise ConnectionError("the locks are closed")
        loop, request = self._loops.here(), Request(wanted)
        return taken(Hold(request, loop, self), lambda at: loop.router.ask(request, at), cancel)

    def hold(
        self, key: Key, *, wait: Duration | None = None, lease: Duration = 10, cancel: threading.Event | None = None
    ) -> Scope:
        """`with quorum.hold("jobs", wait=10) as hold:`; like `acquire`, and released at the end,
        where `Lost` is raised if the hold was lost."""
        return Scope(lambda: self.acquire(key, wait=wait, lease=lease, cancel=cancel))

    def close(self) -> None:
        """Releases every hold, ends every wait, closes the connections."""
        self._closed = True
        self._loops.close(self._timeout)

    def __enter__(self) -> Quorum:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

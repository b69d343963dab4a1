"""Locks by a majority of several servers, for threads."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from ._ask import Ask, Duration, Key, ask, seconds
from ._bench import Bench
from ._clock import Timer
from ._hold import Hold
from ._router import Router
from ._seat import SeatCore
from ._states import Pending
from ._ticker import Ticker
from ._wait import taken, wait
from .errors import ConnectionError


class ThreadBench(Bench):
    def __init__(self, sessions: Sequence[Any], timeout: float, ticker: Ticker) -> None:
        super().__init__(sessions, timeout)
        self._ticker = ticker
        self._timer: Timer | None = None

    def wait(self, pending: Pending, event: threading.Event, cancel: threading.Event | None = None) -> bool:
        return wait(pending, event, cancel)

    def _arm(self, due: float) -> None:
        if due < float("inf"):
            self._timer = self._ticker.at(due, self.tick, self._timer)
        elif self._timer:
            self._ticker.cancel(self._timer)
            self._timer = None


class BaseQuorum:
    """What both faces check alike."""

    @staticmethod
    def _checked(clients: Iterable[Any]) -> list[Any]:
        clients = list(clients)
        if len(clients) % 2 == 0:
            raise ValueError("a quorum is of an odd number of servers")
        if any(hasattr(client, "nodes_manager") for client in clients):
            raise TypeError("a quorum is of single servers, not of clusters")
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
    """

    def __init__(self, clients: Iterable[Any], *, timeout: Duration = 2) -> None:
        self._timeout = seconds(timeout, "timeout")
        self._routers = [Router(client, self._timeout, SeatCore) for client in self._checked(clients)]
        self._ticker = Ticker()
        self._closed = False
        weakref.finalize(self, _abandon, self._routers, self._ticker).atexit = False

    def acquire(
        self, key: Key, *, wait: Duration | None = None, lease: Duration = 10, cancel: threading.Event | None = None
    ) -> Hold:
        """Takes the lock at a majority; `hold.token` is greater than all before. The client
        renews it every third of `lease`; it is lost when no majority is sure of it.

        Raises `NotAcquired`, `Refused`, and `ConnectionError` where no majority can be reached.
        """
        wanted = self._wanted(key, wait, lease)
        bench, event = self._bench(), threading.Event()
        request = bench.act(lambda core, now: core.ask(wanted, event.set, now))
        give_up = lambda: bench.act(lambda core, now: core.give_up(now))  # noqa: E731
        held = taken(request, lambda: bench.wait(request, event, cancel), give_up)
        return Hold(held, bench, self)

    @contextmanager
    def hold(
        self, key: Key, *, wait: Duration | None = None, lease: Duration = 10, cancel: threading.Event | None = None
    ) -> Iterator[Hold]:
        """`with quorum.hold("jobs", wait=10) as hold:`; like `acquire`, and released at the end,
        where `Lost` is raised if the hold was lost."""
        with self.acquire(key, wait=wait, lease=lease, cancel=cancel) as hold:
            yield hold

    def close(self) -> None:
        """Releases every hold, ends every wait, closes the connections."""
        self._closed = True
        closing = [
            threading.Thread(target=router.close, args=(self._timeout,), daemon=True) for router in self._routers
        ]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
        self._ticker.end()

    def _bench(self) -> ThreadBench:
        if self._closed:
            raise ConnectionError("the locks are closed")
        if self._ticker.pid != os.getpid():
            self._ticker.begin()
        return ThreadBench([router.session(b"") for router in self._routers], self._timeout, self._ticker)

    def __enter__(self) -> Quorum:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _abandon(routers: list[Router], ticker: Ticker) -> None:
    ticker.end()
    for router in routers:
        router.abandon()

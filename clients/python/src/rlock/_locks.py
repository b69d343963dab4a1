"""What a program makes once: locks, and jobs that take several."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._ask import Ask, Duration, Keys, Options, ask, seconds
from ._hold import Hold
from ._router import router
from ._session import Session
from ._states import JobState, Request
from ._wait import taken
from .errors import ConnectionError

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
        session = self._home()._session(wanted)
        event = threading.Event()
        request = session.act(lambda core, now: core.ask(wanted, job, event.set, now))
        held = taken(request, lambda: session.wait(request, event, cancel), lambda: _give_up(request))
        return Hold(held, request.home.face, self._home())

    @contextmanager
    def hold(
        self, key: Keys, *, cancel: threading.Event | None = None, **options: Unpack[Options]
    ) -> Iterator[Hold]:
        """`with locks.hold("jobs", wait=10) as hold:`; like `acquire`, and released at the end,
        where `Lost` is raised if the hold was lost."""
        with self.acquire(key, cancel=cancel, **options) as hold:
            yield hold


def _give_up(request: Request) -> None:
    while not (request.home and request.home.face.act(lambda core, now: core.give_up(request, now))):
        time.sleep(0.001)  # it is just going from one node to another


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


class Locks(_Takes):
    """The locks of one server, or of a cluster, for all threads of a process. Make it once.

    client: a `redis.Redis` or `redis.RedisCluster`, whose address, TLS and credentials are used.
    timeout: how long to connect for, and to wait for an answer, in seconds or a `timedelta`.
    """

    def __init__(self, client: Any, *, timeout: Duration = 5) -> None:
        self._timeout = seconds(timeout, "timeout")
        self._router = router(client, self._timeout)
        self._closed = False
        weakref.finalize(self, self._router.abandon).atexit = False

    def _home(self) -> Locks:
        return self

    def job(self) -> Job:
        return Job(self)

    def close(self) -> None:
        """Releases every hold, ends every wait, closes the connection."""
        self._closed = True
        self._router.close(self._timeout)

    def _session(self, wanted: Ask) -> Session:
        if self._closed:
            raise ConnectionError("the locks are closed")
        return self._router.session(wanted.keys[0])

    def __enter__(self) -> Locks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

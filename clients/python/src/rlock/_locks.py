"""What a program makes once: locks, and jobs that take several."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._ask import Ask, Duration, Keys, Options, ask, seconds
from ._connect import maker
from ._core import Core
from ._hold import Hold
from ._session import Session
from ._states import JobState
from .errors import Cancelled, ConnectionError

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
        session = self._home()._session()
        event = threading.Event()
        request = session.act(lambda core, now: core.ask(wanted, job, event.set, now))
        try:
            if not session.wait(request, event, cancel):
                raise Cancelled(f"the wait for {wanted.name} was called off")
        except BaseException:  # KeyboardInterrupt too: the server is to hear of it
            session.act(lambda core, now: core.give_up(request, now))
            raise
        if request.error:
            raise request.error
        assert request.held
        return Hold(request.held, session, self._home())

    @contextmanager
    def hold(
        self, key: Keys, *, cancel: threading.Event | None = None, **options: Unpack[Options]
    ) -> Iterator[Hold]:
        """`with locks.hold("jobs", wait=10) as hold:`; like `acquire`, and released at the end,
        where `Lost` is raised if the hold was lost."""
        with self.acquire(key, cancel=cancel, **options) as hold:
            yield hold


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
        return self._job.owner


class Locks(_Takes):
    """The locks of one server, for all threads of a process. Make it once.

    client: a `redis.Redis`, whose address, TLS and credentials are used.
    timeout: how long to connect for, and to wait for an answer, in seconds or a `timedelta`.
    """

    def __init__(self, client: Any, *, timeout: Duration = 5) -> None:
        self._timeout = seconds(timeout, "timeout")
        self._make = maker(client, self._timeout)
        self._closed = False
        self._guard = threading.Lock()
        self._current: Session | None = None

    def _home(self) -> Locks:
        return self

    def job(self) -> Job:
        return Job(self)

    def close(self) -> None:
        """Releases every hold, ends every wait, closes the connection."""
        with self._guard:
            self._closed, session = True, self._current
        if session and not session.forked:
            session.close(self._timeout)

    def _session(self) -> Session:
        if self._closed:
            raise ConnectionError("the locks are closed")
        session = self._current
        if session is None or session.forked:
            session = self._begin(session)
        return session

    def _begin(self, seen: Session | None) -> Session:
        if seen and seen.forked:
            self._guard = threading.Lock()  # the parent may have forked with it held
        with self._guard:
            if self._current is seen:
                self._current = Session(self._make, Core(self._timeout))
                weakref.finalize(self, self._current.abandon).atexit = False
            assert self._current
            return self._current

    def __enter__(self) -> Locks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

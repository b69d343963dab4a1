"""What a program makes once: locks, and jobs that take several."""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._ask import Ask, Duration, Keys, Options, ask, seconds
from .._states import JobState
from ..errors import ConnectionError
from ._hold import Hold, Scope, taken
from ._router import router
from ._session import Session

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
        session = await self._home()._session(wanted)
        future, done = session.waker()
        request = session.act(lambda core, now: core.ask(wanted, job, done, now))
        give_up = lambda: request.home.face.act(lambda core, now: core.give_up(request, now))  # noqa: E731
        held = await taken(request, future, give_up)
        return Hold(held, request.home.face, self._home())

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


class Locks(_Takes):
    """The locks of one server, or of a cluster, for all tasks of an event loop. Make it once.

    client: a `redis.asyncio.Redis` or `RedisCluster`, whose address, TLS and credentials are used.
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

    async def close(self) -> None:
        """Releases every hold, ends every wait, closes the connection."""
        self._closed = True
        await self._router.close(self._timeout)

    async def _session(self, wanted: Ask) -> Session:
        if self._closed:
            raise ConnectionError("the locks are closed")
        return await self._router.session(wanted.keys[0])

    async def __aenter__(self) -> Locks:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

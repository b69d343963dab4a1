"""A hold of a task, and the scope that ends its body when it is lost."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Protocol

from .._ask import Duration
from .._hold import Acts, BaseHold, BaseLoss
from .._states import Held, Pending, Request
from .._wait import outcome
from ..errors import Lost


class Wakes(Acts, Protocol):
    def waker(self) -> tuple[asyncio.Future[None], Callable[[], None]]: ...


class Loss(BaseLoss):
    """Whether a hold was lost: like an `asyncio.Event`, with a reason."""

    __slots__ = ()
    _session: Wakes

    async def wait(self) -> str:
        """Until it is lost; the reason."""
        future, done = self._session.waker()

        def told(reason: str) -> None:
            done()

        self.add_callback(told)
        try:
            await future
        finally:
            self.remove_callback(told)
        return str(self.reason)


class Hold(BaseHold):
    """A lock that a task has. `async with hold:` releases it at the end."""

    __slots__ = ()
    _session: Wakes

    @property
    def lost(self) -> Loss:
        return Loss(self._held, self._session)

    async def renew(self, lease: Duration | None = None) -> None:
        """Sets the lease, from now. Raises `Lost` if there is nothing left to renew."""
        ms = self._lease(lease)
        future, done = self._session.waker()
        await _over(self._session.act(lambda core, now: core.renew(self._held, ms, now, done)), future)

    def again(self) -> Hold:
        """The same hold once more, for a part of the same work: it needs its own `release`
        (`async with hold.again():`); the last one releases the lock."""
        self._again()
        return self

    async def release(self) -> None:
        """Releases it, also if the task is cancelled meanwhile. Raises `Lost` if it was lost
        before; a second call does nothing."""
        self._check_fork()
        future, done = self._session.waker()
        await _over(self._session.act(lambda core, now: core.release(self._held, now, done)), future)

    async def __aenter__(self) -> Hold:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.release()
        except Exception:
            if error is None:  # else what the body raised says more
                raise


async def taken(request: Request, future: asyncio.Future[None], give_up: Callable[[], object]) -> Held:
    """What the request became, or its error."""
    try:
        if not request.finished:
            await future
    except BaseException:
        give_up()
        raise
    return outcome(request)


async def _over(pending: Pending, future: asyncio.Future[None]) -> None:
    if not pending.finished:
        await future
    if pending.error:
        raise pending.error


class Scope:
    """`async with` a lock: the task that runs the body is cancelled when the hold is lost,
    and `Lost` comes out, as `TimeoutError` does of `asyncio.timeout`."""

    def __init__(self, acquire: Callable[[], Awaitable[Hold]]) -> None:
        self._acquire = acquire
        self._hold: Hold | None = None
        self._task: asyncio.Task[Any] | None = None
        self._before = 0  # cancellations from outside that were there before
        self._handle: asyncio.Handle | None = None  # of a cancellation that is under way
        self._cancelled = False

    async def __aenter__(self) -> Hold:
        self._hold = hold = await self._acquire()
        self._task = asyncio.current_task()
        self._before = _cancelling(self._task)
        hold.lost.add_callback(self._lost)
        return hold

    def _lost(self, reason: str) -> None:
        # Not at once: a task that is running (and has just called close, say) would be hit
        # at an await that may lie behind this scope.
        self._handle = asyncio.get_running_loop().call_soon(self._cancel)

    def _cancel(self) -> None:
        if self._task:
            self._cancelled = True
            self._task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hold, task = self._hold, self._task
        assert hold and task
        hold.lost.remove_callback(self._lost)
        if self._handle:
            self._handle.cancel()
        ours = False
        if self._cancelled:
            # Whoever else has cancelled the task meanwhile is to see it cancelled.
            ours = _uncancel(task) <= self._before and isinstance(error, asyncio.CancelledError)
        try:
            await hold.release()
        except Lost as lost:
            if ours:
                raise lost from error
            if error is None:
                raise
        except Exception:
            if error is None:
                raise


def _cancelling(task: asyncio.Task[Any] | None) -> int:
    if sys.version_info >= (3, 11) and task:
        return task.cancelling()
    return 0


def _uncancel(task: asyncio.Task[Any]) -> int:
    if sys.version_info >= (3, 11):
        return task.uncancel()
    return 0  # nobody can tell one cancellation from two at once

"""A hold of a task, and the scope that ends its body when it is lost."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncContextDecorator
from functools import partial
from types import TracebackType
from typing import Any

from .._ask import Duration
from .._hold import BaseHold, F, checked_body
from .._loss import BaseLoss, Listener
from .._states import Pending
from .._wanted import BaseWanted
from ..errors import Error, Lost
from ._loop import Loop


class Loss(BaseLoss):
    """Whether a hold was lost: like an `asyncio.Event`, with a reason."""

    __slots__ = ()
    _loop: Loop

    def add_callback(self, callback: Callable[[str], object]) -> None:
        """The event loop calls `callback(reason)`, once, as soon as it has learned of the loss. Not
        called in a child after a fork."""
        self._add(callback)

    async def wait(self) -> str:
        """Until it is lost; the reason."""
        future, done = self._loop.waker()
        listener = Listener(future, lambda reason: done())
        try:
            self._loop.post(partial(listener.add, self))
            if not self.is_set():
                await future
        finally:
            self._loop.post(partial(listener.remove, self))
        return str(self.reason)


class Wanted(BaseWanted):
    """Whether somebody waits whom the hold's release would serve: like an `asyncio.Event` that is cleared by itself. A
    hint, which may be late, and out of date. The first use of it asks the server."""

    __slots__ = ()
    _loop: Loop

    async def wait(self) -> bool:
        """Until it is wanted, or over: whether it is wanted."""
        while not (wanted := self.is_set()) and not self._over():
            future, done = self._loop.waker()
            try:
                self._loop.post(partial(self._add, done))
                await future
            finally:
                self._loop.post(partial(self._remove, done))
        return wanted


class Hold(BaseHold):
    """A lock that a task has. `async with hold:` releases it at the end.

    One that nobody refers to any more is released.
    """

    __slots__ = ()
    _loop: Loop

    @property
    def lost(self) -> Loss:
        return Loss(self._request, self._loop)

    @property
    def wanted(self) -> Wanted:
        return Wanted(self._request, self._loop)

    async def renew(self, lease: Duration | None = None) -> None:
        """Sets the lease, from now. Raises `Lost` if there is nothing left to renew."""
        ms, pending = self._lease(lease), Pending()
        await self._do(pending, partial(self._renew, ms, pending))

    async def give_way(self, wait: Duration | None = None, least: Duration = 0.02) -> bool:
        """If somebody waits (`wanted`) and the hold is older than `least`: releases it, and acquires it again behind whoever
        waits, for at most `wait` (None: for ever). Then it has a new token, and `True` is returned. Else `False`, at once.

        If that fails, or is cancelled, the hold is over, and it raises as `acquire` does; the body of an `async with` is not
        cancelled for that. An rlock `Error`, before anything is done: several keys, a `Quorum`, while there is an `again`."""
        way = self._to_give(wait, least)
        if way is None:
            return False
        if not self._loop.loop.is_running():
            raise Error(f"the event loop that has the hold of {self.key} does not run")
        try:
            future, done = self._loop.waker()
            way.request.done = partial(way.came, done)
            self._loop.post(way.begin)
            await self._loop.wait(way.request, future)
            return way.result()
        except BaseException:
            way.fail()
            raise

    def again(self) -> Hold:
        """The same hold once more, for a part of the same work: it needs its own `release`
        (`async with hold.again():`); the last one releases the lock."""
        self._check_fork()
        pending = Pending()
        self._count(object(), pending, 0.0)
        if pending.error:
            raise pending.error
        return self

    async def release(self) -> None:
        """Releases it, also if the task is cancelled meanwhile. Raises `Lost` if it was lost
        before; a second call does nothing."""
        self._check_fork()
        pending = Pending()
        await self._do(pending, partial(self._release, pending))

    async def _do(self, pending: Pending, step: Callable[[float], object]) -> None:
        future, pending.done = self._loop.waker()
        once = partial(self._once, pending, step)
        try:
            self._loop.post(once)
        except BaseException:  # what a signal handler raises
            self._loop.post(once)
            raise
        if not (pending.finished or self._loop.loop.is_running()):  # nobody would answer
            if self._held.over:
                return
            reason = self.lost.reason
            raise Lost(reason, self.key) if reason else Error(f"the event loop that has the hold of {self.key} does not run")
        await self._loop.wait(pending, future)
        if pending.error:
            raise pending.error

    async def __aenter__(self) -> Hold:
        if why := self._entered():
            await self.release()  # raises it
            raise Lost(why, self.key)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is GeneratorExit:  # nobody awaits any more: the garbage collector ends the task
            self._loop.post(self._give_up)
            return
        try:
            await self.release()
        except Exception:
            if error is None:  # else what the body raised says more
                raise


async def taken(hold: Hold, ask: Callable[[float], object]) -> Hold:
    """The hold once it is one. However this ends otherwise, its request is cancelled."""
    request = hold._request
    try:
        future, request.done = hold._loop.waker()
        hold._loop.post(ask)
        await hold._loop.wait(request, future)
        if request.error:
            raise request.error
        return hold
    except BaseException:
        hold._loop.post(request.give_up)
        raise


class Scope(AsyncContextDecorator):
    """`async with` a lock: the task that runs the body is cancelled when the hold is lost,
    and `Lost` comes out, as `TimeoutError` does of `asyncio.timeout`. Also a decorator."""

    def __init__(self, acquire: Callable[[], Awaitable[Hold]]) -> None:
        self._acquire = acquire
        self._hold: Hold | None = None
        self._task: asyncio.Task[Any] | None = None
        self._before = 0  # cancellations from outside that were there before
        self._left = False
        self._cancelled = False

    def _recreate_cm(self) -> Scope:
        return Scope(self._acquire)  # each call of what is decorated has its own

    def __call__(self, function: F) -> F:
        checked_body(function)
        return super().__call__(function)

    async def __aenter__(self) -> Hold:
        if self._task:
            raise RuntimeError("a scope is entered once: make another one by hold()")
        self._task = asyncio.current_task()
        self._hold = hold = await self._acquire()
        self._before = cancelling(self._task)
        # Not at once, but by the event loop's next call: a task that is running (and has just called
        # close, say) would be hit at an await that may lie behind this scope.
        hold.lost.add_callback(self._lost)
        return hold

    def _lost(self, reason: str) -> None:
        gave_way = reason == "released" and self._hold and self._hold._held.over  # and whoever called for that has its error
        if self._task and not self._left and not gave_way:
            self._cancelled = True
            self._task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hold, task = self._hold, self._task
        assert hold and task
        self._left, ours = True, False
        hold.lost.remove_callback(self._lost)
        if kind is GeneratorExit:  # nobody awaits any more
            hold._loop.post(hold._give_up)
            return
        if self._cancelled:
            # Whoever else has cancelled the task meanwhile is to see it cancelled.
            ours = uncancel(task) <= self._before and isinstance(error, asyncio.CancelledError)
        try:
            await hold.release()
        except Exception as failed:
            if ours and isinstance(failed, Lost):
                raise failed from error
            if error is None:
                raise
        if ours:
            raise Lost(str(hold.lost.reason), hold.key) from error


def cancelling(task: asyncio.Task[Any] | None) -> int:
    if sys.version_info >= (3, 11) and task:
        return task.cancelling()
    return 0


def uncancel(task: asyncio.Task[Any]) -> int:
    if sys.version_info >= (3, 11):
        return task.uncancel()
    return 0  # nobody can tell one cancellation from two at once

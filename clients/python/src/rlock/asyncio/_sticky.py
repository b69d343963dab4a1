"""A lock that stays with the event loop between its uses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from .._clock import now
from .._states import Pending
from .._stay import Turn
from .._sticky import BaseSticky, BaseUse
from ..errors import ConnectionError, Lost
from ._hold import Loss, cancelling, uncancel
from ._loop import Loop

if TYPE_CHECKING:
    from ._locks import Locks


async def _asked(loop: Loop, step: Callable[[Pending, float], object]) -> None:
    """Waits for what the loop has to say."""
    pending = Pending()
    future, pending.done = loop.waker()
    loop.post(partial(step, pending))
    await loop.wait(pending, future)
    if pending.error:
        raise pending.error


class OfTask(Turn):
    left = False
    stopped = False  # by us, for it has lost the lock
    before = 0  # cancellations from outside that were there before

    def stop(self) -> None:
        if not self.left:
            self.stopped = True
            self.who.cancel()


class Use(BaseUse):
    """One use of a sticky lock: `async with sticky.use() as use:`. The task that runs the body is cancelled when the lock is
    lost, and `Lost` comes out."""

    __slots__ = ()
    _turn: OfTask | None

    @property
    def lost(self) -> Loss:
        return Loss(self._has().request, self._stay.loop)

    async def token(self) -> int:
        """A fencing token of this use, greater than those of all before it: storage refuses a smaller one than it has seen.

        The first use that asks for one since the lock was acquired has it at once, each other one by a round trip to the server.
        Raises `Lost`, `Refused`, `ConnectionError`."""
        turn = self._has()
        if turn.token is None:
            if self._stay.loop.forked:
                raise Lost("fork", self.key)
            await _asked(self._stay.loop, partial(self._stay.token, turn))
        assert turn.token is not None
        return turn.token

    async def __aenter__(self) -> Use:
        if self._turn is not None:
            raise self._twice()
        stay = self._stay
        self._turn = turn = OfTask()
        turn.who = task = asyncio.current_task()
        try:
            if (
                stay.until
                and asyncio._get_running_loop() is stay.loop.loop
                and not stay.line
                and stay.has.setdefault(None, turn) is turn
            ):
                at = now()
                if at < stay.until and at < stay.beat.proof + stay.half and not stay.loop.forked:
                    assert stay.request
                    turn.request = stay.request
                    turn.before = cancelling(task)
                    return self
                stay.leave(turn)
            await self._wait(turn)
            turn.before = cancelling(task)
            return self
        except BaseException:
            self._end()
            raise

    async def _wait(self, turn: Turn) -> None:
        sticky: Sticky = self._sticky
        stay = self._stay = sticky._here(sticky._locks._loops.here())
        user = stay.has.get(None)
        if isinstance(user, Turn) and user.who is turn.who:
            raise sticky._within()
        waiting = sticky._waiting(stay, turn)
        try:
            future, waiting.done = stay.loop.waker()
            stay.loop.post(partial(stay.begin, waiting))
            await stay.loop.wait(waiting, future)
            if waiting.error:
                raise waiting.error
        except BaseException:
            stay.loop.post(partial(stay.give_up, waiting))
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        turn = self._turn
        assert turn is not None
        at, stay, turn.left, ours = now(), self._stay, True, False
        if kind is GeneratorExit:  # nobody awaits any more
            self._ended(at)
            return
        try:
            if at >= stay.beat.proof + stay.half and self._unheard(at):
                await _asked(stay.loop, stay.prove)
        finally:
            why = self._ended(at)
        if turn.stopped:
            # Whoever else has cancelled the task meanwhile is to see it cancelled.
            ours = uncancel(turn.who) <= turn.before and isinstance(error, asyncio.CancelledError)
        if ours or (why and error is None):  # else what the body raised says more
            raise Lost(str(why), self.key) from error


class Sticky(BaseSticky):
    """A lock that stays with this event loop between its uses: see `Locks.sticky`.

    async with sticky.use() as use:
        ...
    """

    _locks: Locks

    @staticmethod
    def _tell(turn: Turn) -> None:
        assert isinstance(turn, OfTask)
        turn.who.get_loop().call_soon(turn.stop)  # as for any scope

    def use(self) -> Use:
        """Uses of an event loop come one after the other. Each waits for at most `wait`."""
        return Use(self)

    async def close(self) -> None:
        """It is released, after the use that is under way, and is not used any more. Waits for the server's answer to that, if no
        use is under way."""
        self._closed = True
        try:
            stay = self._here(self._locks._loops.here())
        except ConnectionError:
            return  # the locks are closed, and so is this
        await _asked(stay.loop, stay.close)

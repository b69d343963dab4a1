"""A hold gives way: it is released, and acquired anew behind whoever waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ._clock import now
from ._states import Hint, Pending, Request, nothing
from .errors import Lost

if TYPE_CHECKING:
    from ._hold import BaseHold


class Way:
    """The request is as any other. The hold is what comes of it, once it is granted: until then it is over."""

    __slots__ = ("_before", "_begun", "_hold", "_released", "_taken", "refused", "request")

    def __init__(self, hold: BaseHold, wait: float) -> None:
        self._hold = hold
        self._before = held = hold._held
        self.request = Request(held.request.ask._replace(wait=wait, lease=held.lease), held.request.job)
        self.request.hint = Hint()
        self.refused: Exception | None = None  # nothing was done
        self._released = Pending()
        self._begun = self._taken = False

    # Of the program.

    def result(self) -> bool:
        """Once the request is over. Raises what was in the way."""
        if error := self.refused or self._released.error or self.request.error:
            raise error
        held = self.request.held
        if held is None or held.over:  # the program has released it meanwhile
            raise Lost("released", self._hold.key)
        self._hold._request.held = held
        if not self._taken:
            self._hold._loop.post(self._take)
        return True

    def fail(self) -> None:
        """However it ends otherwise: nothing is left, and the hold is over."""
        if self._begun and not self.refused:
            self._mark()
        self._hold._loop.post(self._stop)

    def _mark(self) -> str:
        """It is over: why."""
        held, error = self._hold._held, self._released.error
        held.seen = held.seen or (error.reason if isinstance(error, Lost) else "released")
        return self._before.reason or held.reason or held.seen

    # Steps of the loop, and what it calls.

    def begin(self, at: float) -> None:
        """Both commands go out at once."""
        hold, held = self._hold, self._before
        if self._begun:
            return
        why = held.reason or ("released" if held.over else None)
        self.refused = Lost(why, hold.key) if why else hold._unfit()
        self._begun = True
        if self.refused:
            self.request.end(None)
            return
        hold._way, self._released.done = self, self._let_go
        held.request.home.give_way(held, self.request, at, self._released)
        hold._loop.router.ask(self.request, at)

    def came(self, ring: Callable[[], object]) -> object:
        """The request is over."""
        self._take(now())
        return ring()

    def _let_go(self) -> None:
        """What could not be released, or was lost before that, is not acquired anew."""
        if self._released.error and not self._taken:
            self.request.give_up(now())

    def _take(self, at: float) -> None:
        """Who wants to know of the hold's loss is notified of that of the new one."""
        held, before = self.request.held, self._before
        failed = self.refused or self._released.error or self.request.error
        if self._taken or failed or held is None or held.over:
            return
        self._taken = True
        self._hold._request.held = held
        listeners, before.listeners = before.listeners or [], None
        if held.reason:
            for listener in listeners:
                listener(held.reason)
        elif listeners:
            held.listeners = [*(held.listeners or ()), *listeners]
        self._end()

    def _stop(self, at: float) -> None:
        self.begin(at)
        if not self.refused:
            self.request.give_up(at)
            why = self._mark()
            for held in {self._before: None, self._hold._held: None}:
                listeners, held.listeners, held.reason = held.listeners or [], None, held.reason or why
                for listener in listeners:
                    listener(why)
        self._end()

    def _end(self) -> None:
        """Nothing that is left refers to the hold."""
        if self._hold._way is self:
            self._hold._way = None
        self._released.done = self.request.done = nothing

"""Whether a hold is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ._clock import now
from ._loss import over
from ._states import Held, Request
from ._threads import Loop, own
from ._wait import Alarm


class BaseWanted:
    __slots__ = ("_loop", "_request")

    def __init__(self, request: Request, loop: Any) -> None:
        self._request, self._loop = request, loop

    @property
    def _held(self) -> Held:
        """Which may be another one tomorrow: a hold can give way."""
        assert self._request.held
        return self._request.held

    def is_set(self) -> bool:
        """Whether it is; as far as is known, which is nothing yet when it is asked first."""
        held = self._held
        if self._over():
            return False
        if held.hint is None:
            self._loop.post(self._ask)
        hint = held.hint
        return hint is not None and now() < hint.said + held.lease / 2000

    def _over(self) -> bool:
        return over(self._request, self._loop) is not None

    # Steps of the loop.

    def _ask(self, at: float) -> None:
        self._held.request.home.want(self._held, at)

    def _add(self, ring: Callable[[], object], at: float) -> None:
        """`ring` is called when it is wanted, and when it is over."""
        self._ask(at)
        if self._held.hint:
            self._held.hint.waiting[ring] = None
        if self.is_set() or self._over():
            ring()

    def _remove(self, ring: Callable[[], object], at: float) -> None:
        if self._held.hint:
            self._held.hint.waiting.pop(ring, None)


class Wanted(BaseWanted):
    """Whether somebody waits whom the hold's release would serve: like a `threading.Event` that is cleared by itself. A
    hint, which may be late, and out of date. The first use of it asks the server."""

    __slots__ = ()
    _loop: Loop

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is wanted, or over, at most `timeout` seconds: whether it is wanted."""
        alarm = Alarm()
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while not (wanted := self.is_set()) and not self._over() and not getattr(own, "here", False):
                self._loop.post(partial(self._add, alarm.ring))
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    break
                alarm.wait(left)
        finally:
            self._loop.post(partial(self._remove, alarm.ring))
        return wanted

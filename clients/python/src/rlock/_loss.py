"""Whether a hold was lost, and who is notified of that."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from functools import partial
from types import BuiltinMethodType, MethodType
from typing import Any

from ._clock import now
from ._states import Held, Request
from ._threads import Loop, own
from ._wait import Alarm


def checked_callback(callback: Callable[[str], object]) -> None:
    """Now: the loop looks at nothing of the program's."""
    if not callable(callback) or inspect.iscoroutinefunction(callback):
        raise TypeError(f"a callback is a plain function of the reason, not {callback!r}")


def same(one: Any, other: Any) -> bool:
    """Whether it is the same function or method; `==` could be code of the program."""
    if isinstance(one, MethodType) and isinstance(other, MethodType):
        return one.__self__ is other.__self__ and one.__func__ is other.__func__
    return one is other or (isinstance(one, BuiltinMethodType) and isinstance(other, BuiltinMethodType) and one == other)


class Listener:
    """Is notified of a loss."""

    __slots__ = ("callback", "call")

    def __init__(self, callback: Any, call: Callable[[str], object]) -> None:
        self.callback, self.call = callback, call

    def __call__(self, reason: str) -> None:
        self.call(reason)

    def add(self, loss: BaseLoss, at: float) -> None:
        held = loss._held
        if held.reason:
            self.call(held.reason)
        else:
            held.listeners = [*(held.listeners or ()), self]

    def remove(self, loss: BaseLoss, at: float) -> None:
        held = loss._held
        held.listeners = [one for one in held.listeners or () if one is not self] or None


class BaseLoss:
    __slots__ = ("_loop", "_request")

    def __init__(self, request: Request, loop: Any) -> None:
        self._request = request
        self._loop = loop

    @property
    def _held(self) -> Held:
        """Which may be another one tomorrow: a hold can give way."""
        assert self._request.held
        return self._request.held

    @property
    def reason(self) -> str | None:
        """Why it was lost; None: it was not."""
        held = self._held
        if held.reason or held.seen:
            return held.reason or held.seen
        if self._loop.forked:
            return "fork"
        # Should this process have been paused: what is due by now is seen here first.
        home = held.request.home
        why: str | None = home.due(held, now())
        if why:
            held.seen = why
            self._loop.post(lambda at: home.lose(held, why, at))
        return held.reason or why

    def is_set(self) -> bool:
        return self.reason is not None

    def remove_callback(self, callback: Callable[[str], object]) -> None:
        def remove(at: float) -> None:
            for listener in self._held.listeners or ():
                if isinstance(listener, Listener) and same(listener.callback, callback):
                    return listener.remove(self, at)

        self._loop.post(remove)

    def _add(self, callback: Callable[[str], object]) -> None:
        checked_callback(callback)
        listener = Listener(callback, lambda reason: self._loop.later(lambda: callback(reason)))
        try:
            self._loop.post(partial(listener.add, self))
        except BaseException:
            self._loop.post(partial(listener.remove, self))
            raise


def over(request: Request, loop: Any) -> str | None:
    """Why its hold is none any more; None: it is one."""
    loss = BaseLoss(request, loop)
    return loss.reason or ("released" if loss._held.over else None)


class Loss(BaseLoss):
    """Whether a hold was lost: like a `threading.Event`, with a reason."""

    __slots__ = ()
    _loop: Loop

    def add_callback(self, callback: Callable[[str], object]) -> None:
        """`callback(reason)` is called once, by a thread of the client's for that: it may do what
        it likes, also with other locks. Not called in a child after a fork."""
        self._add(callback)

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is lost, at most `timeout` seconds; whether it was."""
        alarm = Alarm()
        listener = Listener(alarm, lambda reason: alarm.ring())
        end = None if timeout is None else time.monotonic() + timeout
        try:
            self._loop.post(partial(listener.add, self))
            while not self.is_set() and not getattr(own, "here", False):
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    break
                alarm.wait(left)
        finally:
            self._loop.post(partial(listener.remove, self))
        return self.is_set()

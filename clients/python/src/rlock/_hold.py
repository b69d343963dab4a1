"""A hold, and the scope of one."""

from __future__ import annotations

import inspect
import logging
import math
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from ._ask import Duration, lease_ms, seconds
from ._clock import now
from ._loss import Loss, over
from ._states import Held, Pending, Request, Unique
from ._threads import Loop, own
from ._wait import Alarm, wait
from ._wanted import BaseWanted, Wanted
from ._way import Way
from .errors import Error, Lost

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("rlock")


def checked_body(function: Any) -> None:
    """What a scope decorates has to have run when it returns."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function!r} only begins when it is called: take the lock inside of it")


class BaseHold(Unique):
    """Made before anything is sent: an acquisition that ends in whichever way, also between two
    instructions of the program, is cancelled when this goes. Once it has given way its request has the hold of
    a later one."""

    __slots__ = ("_keep", "_loop", "_request", "_way")

    def __init__(self, request: Request, loop: Any, keep: object) -> None:
        self._request = request
        self._loop = loop
        self._keep = keep  # the locks, which close when nobody has them any more
        self._way: Way | None = None  # while it gives way

    @property
    def _held(self) -> Held:
        assert self._request.held
        return self._request.held

    @property
    def token(self) -> int:
        """The fencing token: storage refuses a smaller one than it has seen."""
        return self._held.token

    @property
    def key(self) -> str:
        """The key; several of them with ", " between."""
        return self._request.ask.name

    @property
    def keys(self) -> tuple[bytes, ...]:
        return self._request.ask.keys

    @property
    def owner(self) -> str:
        return self._held.request.owner

    def _entered(self) -> str | None:
        """Why it is none to run a body under; None: it is one."""
        return over(self._request, self._loop)

    def _lease(self, lease: Duration | None) -> int | None:
        self._check_fork()
        return None if lease is None else lease_ms(lease)

    def _check_fork(self) -> None:
        if self._loop.forked:
            raise Lost("fork", self.key)

    def _to_give(self, wait: Duration | None, least: Duration) -> Way | None:
        """None: nobody waits, or it is too young."""
        most = math.inf if wait is None else seconds(wait, "wait", least=0, endless=True)
        young = seconds(least, "least", least=0, endless=True)
        self._check_fork()
        if why := over(self._request, self._loop):
            raise Lost(why, self.key)
        if error := self._unfit():
            raise error
        wanted = BaseWanted(self._request, self._loop).is_set()
        return Way(self, most) if wanted and now() >= self._held.since + young else None

    def _unfit(self) -> Error | None:
        """Why it cannot give way, whoever waits."""
        held = self._held
        if not held.request.home.single:
            return Error("a hold by quorum cannot give way")
        if len(held.request.ask.keys) > 1:
            return Error("a hold of several keys cannot give way")
        if held.more:
            return Error(f"{self.key} is held by again() too: release that first, for all of them would give way")
        return None

    # Steps of the loop.

    def _give_up(self, at: float) -> None:
        self._request.give_up(at)

    def _once(self, pending: Pending, step: Callable[[float], object], at: float) -> None:
        """Posted twice, should something strike between: it is done once."""
        if pending.begun:
            return
        pending.begun = True
        step(at)
        if pending.finished:
            pending.done()

    def _release(self, pending: Pending, at: float) -> None:
        if self._way:  # which it does not any more
            self._way.request.give_up(at)
        held = self._held
        home = held.request.home
        # Should this process have been paused: the release itself may say nothing of what was due by then.
        why = home.due(held, at)
        if why and not held.over:
            home.lose(held, why, at)
            pending.error = Lost(held.reason or why, self.key)
        home.release(held, at, pending)

    def _renew(self, ms: int | None, pending: Pending, at: float) -> None:
        self._held.request.home.renew(self._held, ms, at, pending)

    def _count(self, mark: object, pending: Pending, at: float) -> None:
        held = self._held
        if held.reason or held.over:
            pending.error = Lost(held.reason or "released", self.key)
        else:
            held.more = (held.more or set()) | {mark}
        pending.finished = True

    def _uncount(self, mark: object, at: float) -> None:
        if self._held.more:
            self._held.more.discard(mark)

    def __del__(self) -> None:
        try:
            self._forget()
        except (AttributeError, RuntimeError):
            pass  # it was never whole; or Python is ending
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        request, held = self._request, self._request.held
        # Of several keys that were lost the server may still have some for it.
        gone = held is None or held.over or (held.reason and len(request.ask.keys) == 1)
        if not self._loop.forked and not (request.finished and gone):
            self._loop.post(partial(_forgotten, request, self._loop))

    def __repr__(self) -> str:
        held = self._request.held
        if held is None:
            return f"<rlock.Hold {self.key} not acquired>"
        state = f"lost: {held.reason}" if held.reason else "released" if held.over else "held"
        return f"<rlock.Hold {self.key} token={self.token} {state}>"


def _forgotten(request: Request, loop: Any, at: float) -> None:
    if request.finished and request.held and not (request.held.over or request.held.reason):
        loop.later(partial(log.warning, "a hold of %s was forgotten, and is released", request.ask.name))
    request.give_up(at)


class Hold(BaseHold):
    """A lock that the program has. `with hold:` releases it at the end.

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

    def renew(self, lease: Duration | None = None) -> None:
        """Sets the lease, from now. Raises `Lost` if there is nothing left to renew."""
        ms, pending = self._lease(lease), Pending()
        self._do(pending, partial(self._renew, ms, pending))

    def give_way(self, wait: Duration | None = None, least: Duration = 0.02) -> bool:
        """If somebody waits (`wanted`) and the hold is older than `least`: releases it, and acquires it again behind whoever
        waits, for at most `wait` (None: for ever). Then it has a new token, and `True` is returned. Else `False`, at once.

        If that fails the hold is over, and it raises as `acquire` does. An rlock `Error`, before anything is done:
        several keys, a `Quorum`, while there is an `again`."""
        way = self._to_give(wait, least)
        return way is not None and anew(way, self)

    def again(self) -> Hold:
        """The same hold once more, for a part of the same work: it needs its own `release`
        (`with hold.again():`); the last one releases the lock."""
        self._check_fork()
        mark, pending = object(), Pending()
        try:
            self._do(pending, partial(self._count, mark, pending))
            return self
        except BaseException:
            self._loop.post(partial(self._uncount, mark))
            raise

    def release(self) -> None:
        """Releases it. Raises `Lost` if it was lost before; a second call does nothing.

        Whatever strikes here (an exception of a signal handler), it is released."""
        self._check_fork()
        pending = Pending()
        self._do(pending, partial(self._release, pending))

    def _do(self, pending: Pending, step: Callable[[float], object]) -> None:
        once = partial(self._once, pending, step)
        try:
            alarm = Alarm()
            pending.done = alarm.ring
            self._loop.post(once)
            if not getattr(own, "here", False):  # else nobody could read the answer
                wait(pending, alarm)
        except BaseException:
            self._loop.post(once)
            raise
        if pending.error:
            raise pending.error

    def __enter__(self) -> Hold:
        if why := self._entered():
            self.release()  # raises it
            raise Lost(why, self.key)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.release()
        except Exception:
            if error is None:  # else what the body raised says more
                raise


class Scope(ContextDecorator):
    """`with` a lock, which is released at the end. Also a decorator."""

    def __init__(self, acquire: Callable[[], Hold]) -> None:
        self._acquire = acquire
        self._hold: Hold | None = None

    def _recreate_cm(self) -> Scope:
        return Scope(self._acquire)  # each call of what is decorated has its own

    def __call__(self, function: F) -> F:
        checked_body(function)
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{function!r} only begins when it is called: rlock.asyncio has the locks for it")
        return super().__call__(function)

    def __enter__(self) -> Hold:
        if self._hold:
            raise RuntimeError("a scope is entered once: make another one by hold()")
        self._hold = hold = self._acquire()
        return hold

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._hold
        self._hold.__exit__(kind, error, trace)


def taken(hold: Hold, ask: Callable[[float], object], cancel: threading.Event | None) -> Hold:
    """The hold once it is one. However this ends otherwise, its request is cancelled."""
    try:
        if cancel is not None and (isinstance(cancel, type) or not callable(getattr(cancel, "is_set", None))):
            raise TypeError(f"cancel: an rlock.Cancel, or a threading.Event, not {cancel!r}")
        if getattr(own, "here", False):
            raise Error("a finaliser that runs in a thread of rlock's own cannot wait for a lock")
        alarm, request = Alarm(), hold._request
        request.done = alarm.ring
        hold._loop.post(ask)
        wait(request, alarm, cancel)
        if request.error:
            raise request.error
        return hold
    except BaseException:
        hold._loop.post(hold._request.give_up)
        raise


def anew(way: Way, hold: Hold) -> bool:
    """Once the hold has given way, and is one again. However this ends otherwise, it is over."""
    if getattr(own, "here", False):
        raise Error("a finaliser that runs in a thread of rlock's own cannot wait for a lock")
    try:
        alarm = Alarm()
        way.request.done = partial(way.came, alarm.ring)
        hold._loop.post(way.begin)
        wait(way.request, alarm)
        return way.result()
    except BaseException:
        way.fail()
        raise

"""A lock that stays with the process between its uses."""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._ask import Ask, Duration, Key, ask, seconds
from ._clock import now
from ._loss import Loss, over
from ._states import Pending, Unique
from ._stay import MOST, Stay, Turn, Waiting
from ._threads import own
from ._wait import Alarm, wait
from .errors import ConnectionError, Error, Lost

if TYPE_CHECKING:
    from ._locks import Locks

# The turn that has begun last in here. Not by the thread: a scope may be left in another one than it was entered in.
_begun: contextvars.ContextVar[Turn | None] = contextvars.ContextVar("rlock_use", default=None)


def sticky_ask(key: Key, lease: Duration) -> Ask:
    if not isinstance(key, (str, bytes)):
        raise TypeError(f"a sticky lock has one key, a str or bytes: not {key!r}")
    return ask(key, lease=lease, wait=math.inf)


class BaseSticky(Unique):
    def __init__(self, locks: Any, key: Key, idle: Duration, wait: Duration, lease: Duration) -> None:
        self._ask = sticky_ask(key, lease)
        self._idle = seconds(idle, "idle", most=MOST)
        self._wait = seconds(wait, "wait", least=0)
        self._locks = locks
        self._closed = False
        self._stays: dict[Any, Stay] = {}  # of each loop that has had it
        self._stay = Stay(None, self._ask, self._idle)  # nowhere, before the first use

    @property
    def key(self) -> str:
        return self._ask.name

    def _here(self, loop: Any) -> Stay:
        if self._stay.loop is not loop:
            for other in list(self._stays):
                if other.gone:
                    self._stays.pop(other, None)
            self._stay = self._stays.setdefault(loop, Stay(loop, self._ask, self._idle, self._tell))
            self._stay.closed = self._stay.closed or self._closed
        return self._stay

    def _waiting(self, stay: Stay, turn: Turn) -> Waiting:
        return Waiting(turn, self._wait, stay.loop.router.timeout)

    @staticmethod
    def _tell(turn: Turn) -> None:
        """The lock was lost in this turn."""

    def _within(self) -> Error:
        return Error(f"a use of {self.key} within a use of it would wait for itself")

    def __repr__(self) -> str:
        return f"<rlock.Sticky {self.key}>"


class BaseUse(Unique):
    """Whatever strikes where: a use that nobody refers to any more is over."""

    __slots__ = ("_stay", "_sticky", "_turn")

    def __init__(self, sticky: Any) -> None:
        self._sticky = sticky
        self._turn: Turn | None = None
        self._stay: Stay = sticky._stay

    @property
    def key(self) -> str:
        return self._stay.ask.name

    @property
    def owner(self) -> str:
        """That of the acquisition, which one use or many have had."""
        return self._has().request.owner

    def _has(self) -> Turn:
        if self._turn is None:
            raise RuntimeError("a use begins with its `with`")
        return self._turn

    def _twice(self) -> RuntimeError:
        return RuntimeError("a use is entered once: make another one by use()")

    def _end(self) -> None:
        """However it ends otherwise. By the loop: two at once might end the next one."""
        turn, stay = self._turn, self._stay
        if turn is not None:
            turn.over = True
        if turn is not None and stay.loop is not None and stay.has.get(None) is turn and not stay.loop.forked:
            stay.loop.post(partial(stay.end, turn))

    def _unheard(self, at: float) -> bool:
        """For too long, as in a process that was stopped: whether it has the lock has to be asked."""
        stay = self._stay
        return at >= stay.beat.proof + stay.half and not (over(self._has().request, stay.loop) or stay.loop.forked)

    def _ended(self, at: float) -> str | None:
        """Why it had not the lock to its end."""
        stay, turn, why = self._stay, self._has(), None
        try:
            stay.used, stay.uses = at, stay.uses + 1
            if at >= stay.until or at >= stay.beat.proof + stay.half or stay.loop.forked:
                why = over(turn.request, stay.loop)
            if stay.has.get(None) is turn:
                del stay.has[None]
            turn.over = True
            if (stay.line or at >= stay.until) and not stay.loop.forked:
                stay.loop.post(stay.look)
            return why
        except BaseException:
            self._end()
            raise

    def __del__(self) -> None:
        try:
            if self._stay.has.get(None) is self._turn is not None:
                self._end()
        except (AttributeError, RuntimeError):
            pass  # it was never whole; or Python is ending
        except BaseException:
            self._end()
            raise

    def __repr__(self) -> str:
        return f"<rlock.Use {self.key}>"


def _asked(loop: Any, step: Callable[[Pending, float], object]) -> None:
    """Waits for what the loop has to say. Posted twice, should something strike between: it is done once."""
    pending, alarm = Pending(), Alarm()
    pending.done, once = alarm.ring, partial(step, pending)
    try:
        loop.post(once)
        if not getattr(own, "here", False):  # else nobody could read the answer
            wait(pending, alarm)
    except BaseException:
        loop.post(once)
        raise
    if pending.error:
        raise pending.error


class Use(BaseUse):
    """One use of a sticky lock: `with sticky.use() as use:`."""

    __slots__ = ()

    @property
    def lost(self) -> Loss:
        return Loss(self._has().request, self._stay.loop)

    def token(self) -> int:
        """A fencing token of this use, greater than those of all before it: storage refuses a smaller one than it has seen.

        The first use that asks for one since the lock was acquired has it at once, each other one by a round trip to the server.
        Raises `Lost`, `Refused`, `ConnectionError`."""
        turn = self._has()
        if turn.token is None:
            if getattr(own, "here", False):
                raise Error("a finaliser that runs in a thread of rlock's own cannot wait for a token")
            if self._stay.loop.forked:
                raise Lost("fork", self.key)
            _asked(self._stay.loop, partial(self._stay.token, turn))
        assert turn.token is not None
        return turn.token

    def __enter__(self) -> Use:
        if self._turn is not None:
            raise self._twice()
        stay = self._stay
        self._turn = turn = Turn()
        try:
            if not stay.line and stay.has.setdefault(None, turn) is turn:
                at = now()
                if at < stay.until and at < stay.beat.proof + stay.half and not stay.loop.forked:
                    assert stay.request
                    turn.request = stay.request
                    self._begins(turn)
                    return self
                stay.leave(turn)
            self._wait(turn)
            self._begins(turn)
            return self
        except BaseException:
            self._end()
            raise

    @staticmethod
    def _begins(turn: Turn) -> None:
        outer = _begun.get()
        while outer is not None and outer.over:
            outer = outer.outer
        turn.outer = outer
        _begun.set(turn)

    def _wait(self, turn: Turn) -> None:
        if getattr(own, "here", False):
            raise Error("a finaliser that runs in a thread of rlock's own cannot wait for a lock")
        sticky: Sticky = self._sticky
        stay = self._stay = sticky._here(sticky._locks._loop())
        user, outer = stay.has.get(None), _begun.get()
        while outer is not None:
            if outer is user and not outer.over:
                raise sticky._within()
            outer = outer.outer
        waiting, alarm = sticky._waiting(stay, turn), Alarm()
        try:
            waiting.done = alarm.ring
            stay.loop.post(partial(stay.begin, waiting))
            wait(waiting, alarm)
            if waiting.error:
                raise waiting.error
        except BaseException:
            stay.loop.post(partial(stay.give_up, waiting))
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        at, stay = now(), self._stay
        try:
            if at >= stay.beat.proof + stay.half and self._unheard(at) and not getattr(own, "here", False):
                _asked(stay.loop, stay.prove)
        except BaseException:
            self._end()
            raise
        why = self._ended(at)
        if why and error is None:  # else what the body raised says more
            raise Lost(why, self.key)


class Sticky(BaseSticky):
    """A lock that stays with this process between its uses: see `Locks.sticky`.

    with sticky.use() as use:
        ...
    """

    _locks: Locks

    def use(self) -> Use:
        """Uses of a process come one after the other. Each waits for at most `wait`."""
        return Use(self)

    def close(self) -> None:
        """It is released, after the use that is under way, and is not used any more. Waits for the server's answer to that, if no
        use is under way."""
        self._closed = True
        try:
            stay = self._here(self._locks._loop())
        except ConnectionError:
            return  # the locks are closed, and so is this
        _asked(stay.loop, stay.close)

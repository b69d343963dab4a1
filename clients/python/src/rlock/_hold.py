"""A hold, and how its loss is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, TypeVar

from ._ask import Duration, lease_ms
from ._core import Core
from ._states import Held, Pending
from .errors import Lost

T = TypeVar("T")


class Acts(Protocol):
    """What is the same in the sessions of both faces."""

    @property
    def forked(self) -> bool: ...

    def act(self, step: Callable[[Any, float], T]) -> T: ...


class Waits(Acts, Protocol):
    """And in those of threads."""

    def wait(self, pending: Pending, event: threading.Event) -> bool: ...


class BaseLoss:
    __slots__ = ("_held", "_session")

    def __init__(self, held: Held, session: Acts) -> None:
        self._held = held
        self._session = session

    @property
    def reason(self) -> str | None:
        """Why it was lost; None: it was not."""
        if not self._held.reason and not self._session.forked:
            # Should this process have stood still: what is due by now is seen here first.
            self._session.act(lambda core, now: core.tick(now))
        return self._held.reason or ("fork" if self._session.forked else None)

    def is_set(self) -> bool:
        return self.reason is not None

    def add_callback(self, callback: Callable[[str], object]) -> None:
        """`callback(reason)` is called once, by the thread that learns of the loss: it must
        be quick, and may be called at once. Not called in a child after a fork."""

        def add(core: Core, now: float) -> str | None:
            if not self._held.reason:
                if self._held.told is None:
                    self._held.told = []
                self._held.told.append(callback)
            return self._held.reason

        reason = self.reason if self._session.forked else self._session.act(add)
        if reason:
            callback(reason)

    def remove_callback(self, callback: Callable[[str], object]) -> None:
        told = self._held.told
        if told and callback in told:
            told.remove(callback)


class BaseHold:
    __slots__ = ("_held", "_keep", "_session")

    def __init__(self, held: Held, session: Acts, keep: object) -> None:
        self._held = held
        self._session = session
        self._keep = keep  # the locks, which close when nobody has them any more

    @property
    def token(self) -> int:
        """The fencing token: storage refuses a smaller one than it has seen."""
        return self._held.token

    @property
    def key(self) -> str:
        """The key; several of them with ", " between."""
        return self._held.request.ask.name

    @property
    def keys(self) -> tuple[bytes, ...]:
        return self._held.request.ask.keys

    @property
    def owner(self) -> str:
        return self._held.request.owner

    def _lease(self, lease: Duration | None) -> int | None:
        self._check_fork()
        return None if lease is None else lease_ms(lease)

    def _again(self) -> None:
        self._check_fork()
        self._session.act(lambda core, now: core.again(self._held))

    def _check_fork(self) -> None:
        if self._session.forked:
            raise Lost("fork", self.key)

    def __repr__(self) -> str:
        state = f"lost: {self._held.reason}" if self._held.reason else "released" if self._held.over else "held"
        return f"<rlock.Hold {self.key} token={self.token} {state}>"


class Loss(BaseLoss):
    """Whether a hold was lost: like a `threading.Event`, with a reason."""

    __slots__ = ()

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is lost, at most `timeout` seconds; whether it was."""
        event = threading.Event()
        def told(reason: str) -> None:
            event.set()

        self.add_callback(told)
        try:
            event.wait(timeout)
        finally:
            self.remove_callback(told)
        return self.is_set()


class Hold(BaseHold):
    """A lock that the program has. `with hold:` releases it at the end."""

    __slots__ = ()
    _session: Waits

    @property
    def lost(self) -> Loss:
        return Loss(self._held, self._session)

    def renew(self, lease: Duration | None = None) -> None:
        """Sets the lease, from now. Raises `Lost` if there is nothing left to renew."""
        ms, event = self._lease(lease), threading.Event()
        pending = self._session.act(lambda core, now: core.renew(self._held, ms, now, event.set))
        self._session.wait(pending, event)
        if pending.error:
            raise pending.error

    def again(self) -> Hold:
        """The same hold once more, for a part of the same work: it needs its own `release`
        (`with hold.again():`); the last one releases the lock."""
        self._again()
        return self

    def release(self) -> None:
        """Releases it. Raises `Lost` if it was lost before; a second call does nothing."""
        self._check_fork()
        event = threading.Event()
        pending = self._session.act(lambda core, now: core.release(self._held, now, event.set))
        self._session.wait(pending, event)
        if pending.error:
            raise pending.error

    def __enter__(self) -> Hold:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.release()
        except Exception:
            if error is None:  # else what the body raised says more
                raise

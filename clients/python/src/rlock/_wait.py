"""A thread waits for something that may be cancelled."""

from __future__ import annotations

import os
import threading
import time
import weakref
from _thread import allocate_lock

from ._states import Pending
from .errors import Cancelled, ConnectionError

_alarms: weakref.WeakSet[Alarm] = weakref.WeakSet()


def _in_child() -> None:
    """Whoever forked in a wait, by a signal handler of its own, is woken in the child: nobody else is left to."""
    for alarm in _alarms:
        alarm.ring()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Alarm:
    """What a thread waits on. `ring` waits for nobody, and neither is ever half done: a
    `threading.Event` has a lock inside, which an exception can leave locked."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()
        _alarms.add(self)

    def ring(self) -> None:
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it rings already

    def wait(self, seconds: float | None) -> bool:
        return self._lock.acquire(True, -1 if seconds is None else min(max(seconds, 0), threading.TIMEOUT_MAX))


class Cancel(threading.Event):
    """`set` cancels the waits that were given it (`cancel=`), at once, also from a signal handler."""

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False
        self._alarms: dict[Alarm, None] = {}

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        for alarm in list(self._alarms):
            alarm.ring()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        alarm, end = Alarm(), None if timeout is None else time.monotonic() + timeout
        self._alarms[alarm] = None
        try:
            while not self._is_set and (end is None or time.monotonic() < end):
                alarm.wait(None if end is None else end - time.monotonic())
        finally:
            self._alarms.pop(alarm, None)
        return self._is_set


def wait(pending: Pending, alarm: Alarm, cancel: threading.Event | None = None, end: float | None = None) -> None:
    """Until it is over, or it is `end`. Raises `Cancelled` if `cancel` was set before, and `ConnectionError` in a
    child of a fork."""
    process = os.getpid()
    alarms = cancel._alarms if isinstance(cancel, Cancel) else {}
    alarms[alarm] = None
    try:
        while not pending.finished:
            if os.getpid() != process:
                raise ConnectionError("the process has forked: its parent goes on with this")
            if cancel is not None and cancel.is_set():
                raise Cancelled("the wait was cancelled")
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return
            # A plain Event notifies nobody that it was set.
            alarm.wait(0.1 if cancel is not None and not isinstance(cancel, Cancel) else left)
    finally:
        alarms.pop(alarm, None)

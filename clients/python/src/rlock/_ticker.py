"""The thread that keeps the time of the holds of a quorum. (Those of the sessions may be
busy with connecting just then.)"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable

from ._clock import Timer, Timers, now


class Ticker:
    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Anew: after a fork the thread, and perhaps the lock, have stayed with the parent."""
        self.pid = os.getpid()
        self._timers = Timers()
        self._changed = threading.Condition()
        self._due: list[Callable[[], object]] = []
        self._ended = False
        self._thread: threading.Thread | None = None

    def at(self, when: float, due: Callable[[], object], instead: Timer | None) -> Timer:
        """`due` is called then, and what was to be called `instead` is not."""
        with self._changed:
            self._timers.cancel(instead)
            first = self._timers.next()
            timer = self._timers.at(when, lambda now: self._due.append(due))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rlock-quorum", daemon=True)
                self._thread.start()
            if when < first:
                self._changed.notify()
            return timer

    def cancel(self, timer: Timer | None) -> None:
        with self._changed:
            self._timers.cancel(timer)

    def end(self) -> None:
        """Nobody will want it any more; what is due still is seen to."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._timers.run(now())
                due, self._due = self._due, []
                if not due:
                    first = self._timers.next()
                    if self._ended and first == math.inf:
                        self._thread = None
                        return
                    self._changed.wait(min(3600, max(0.0, first - now()) + 0.0005))
            for call in due:
                call()

"""Threads that run the program's callbacks, which may do what they like."""

from __future__ import annotations

import _thread
import logging
import math
import os
from collections import deque
from collections.abc import Callable

from ._clock import now

log = logging.getLogger("rlock")

# s: one that takes longer holds up no other: the rest goes to another thread.
PATIENCE = 0.05


class _Worker:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.since = now()
        self.over = False


class Callbacks:
    """`put` and `look` are called by one thread, which waits for none of it."""

    def __init__(self) -> None:
        self._queue: deque[Callable[[], object]] = deque()
        self._worker = _Worker()
        self._worker.over = True

    def put(self, call: Callable[[], object]) -> None:
        self._queue.append(call)

    def due(self) -> float:
        """When to look again."""
        return self._worker.since + PATIENCE if self._queue else math.inf

    def look(self, at: float) -> None:
        if not self._queue or not (self._worker.over or at >= self.due()):
            return
        self._worker = worker = _Worker()
        try:
            _thread.start_new_thread(self._run, (worker,))
        except RuntimeError:
            worker.over = True  # there are too many: later

    def _run(self, worker: _Worker) -> None:
        while self._worker is worker and worker.pid == os.getpid():  # else it has forked
            try:
                call = self._queue.popleft()
            except IndexError:
                worker.over = True
                if not self._queue:
                    return
                worker.over = False  # one came just now
                continue
            worker.since = now()
            try:
                call()
            except Exception:
                log.exception("in a callback of a lost hold")

"""Time for leases, and the one heap of what is due."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from functools import partial

_BOOT = getattr(time, "CLOCK_BOOTTIME", None)

# Seconds, by a clock that also runs while the machine is suspended, where there is one.
now: Callable[[], float] = time.monotonic if _BOOT is None else partial(time.clock_gettime, _BOOT)


class Timer:
    __slots__ = ("due",)

    def __init__(self, due: Callable[[float], None]) -> None:
        self.due: Callable[[float], None] | None = due


class Timers:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self._dead = 0

    def at(self, when: float, due: Callable[[float], None]) -> Timer:
        timer = Timer(due)
        heapq.heappush(self._heap, (when, next(self._count), timer))
        return timer

    def cancel(self, timer: Timer | None) -> None:
        if timer is None or timer.due is None:
            return
        timer.due = None
        self._dead += 1
        # Most waits end long before their time: what is dead must not pile up.
        if self._dead > 64 and self._dead * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].due]
            heapq.heapify(self._heap)
            self._dead = 0

    def next(self) -> float:
        while self._heap and not self._heap[0][2].due:
            heapq.heappop(self._heap)
            self._dead -= 1
        return self._heap[0][0] if self._heap else math.inf

    def run(self, now: float) -> None:
        if not self._heap or self._heap[0][0] > now:
            return
        while self.next() <= now:
            due, timer = None, heapq.heappop(self._heap)[2]
            due, timer.due = timer.due, None
            if due:
                due(now)

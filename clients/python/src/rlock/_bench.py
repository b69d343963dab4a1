"""Runs a `Majority`: what it decides is done to the sessions, in order and outside its lock."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ._clock import now
from ._majority import Majority

T = TypeVar("T")
log = logging.getLogger("rlock")


class Bench:
    """Of one acquisition. A session's thread calls `act` with no lock in its hands, and no
    session is called with this lock held: so nobody waits for each other."""

    def __init__(self, sessions: Sequence[Any], timeout: float) -> None:
        self.sessions = sessions
        self.core = Majority(sessions, timeout, self.act)
        self._lock = threading.Lock()
        self._working = False

    @property
    def forked(self) -> bool:
        return any(session.forked for session in self.sessions)

    def act(self, step: Callable[[Majority, float], T]) -> T:
        with self._lock:
            at = now()
            self.core.tick(at)
            result = step(self.core, at)
            calls, self.core.calls = self.core.calls, []
            self._arm(self.core.next_time())
        self._work()
        for call in calls:
            try:
                call()
            except Exception:
                log.exception("in a callback of a lost hold")
        return result

    def tick(self) -> None:
        if not self.forked:
            self.act(lambda core, at: None)

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._working or not self.core.todo:
                    return
                self._working = True
                session, step = self.core.todo.popleft()
            try:
                session.act(step)
            finally:
                self._working = False

    def _arm(self, due: float) -> None:
        """Sees to it that `tick` is called then."""
        raise NotImplementedError

"""The heartbeat: when to ask whether the server is there, and when it is not."""

from __future__ import annotations

import math

IDLE = 30_000  # ms: a session with nothing to lose asks every third of it
# ms: a shorter lease counts as one of so long. It is over before anything can be proved, and with the
# connection all other holds would be lost too. A hold without the watchdog does not end with it.
LEAST, LEAST_PLAIN = 100, 5000


def counted(lease: int, watchdog: bool) -> int:
    return max(lease, LEAST if watchdog else LEAST_PLAIN)


class Beat:
    """Counts the leases of all holds and waits, as `counted` says; the shortest one sets the pace."""

    def __init__(self) -> None:
        self._leases: dict[int, int] = {}
        self._shortest = IDLE
        self._asked = 0.0
        self._proof = 0.0
        self._since = 0.0  # when the shortest lease came
        self._bound = math.inf  # when those that were there before it want a newer proof

    def add(self, lease: int, now: float) -> None:
        before = bool(self._leases)
        self._leases[lease] = self._leases.get(lease, 0) + 1
        if before and lease >= self._shortest:
            return
        # A proof that is old enough to end a lease which has only just begun ends nothing.
        self._bound = self.dead_at() if before else math.inf
        self._since, self._shortest = now, lease

    def remove(self, lease: int) -> None:
        left = self._leases.pop(lease, 0) - 1
        if left > 0:
            self._leases[lease] = left
        elif lease == self._shortest:
            self._shortest = min(self._leases, default=IDLE)

    def start(self, now: float) -> None:
        self._asked = now
        self.proved(now)

    def asked(self, now: float) -> None:
        self._asked = now

    def proved(self, sent: float) -> None:
        """Something that was sent then was answered."""
        self._proof = max(self._proof, sent)
        if self._proof >= self._since:
            self._bound = math.inf

    @property
    def third(self) -> float:
        return self._shortest / 3000

    def ask_at(self) -> float:
        return self._asked + self.third

    def dead_at(self) -> float:
        return min(self._bound, max(self._proof, self._since) + self._shortest / 1000)

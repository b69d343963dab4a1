"""The heartbeat: when to say that we are there and ask whether the server is, and when it is not."""

from __future__ import annotations

import math
from typing import NamedTuple

IDLE = 30_000  # ms: a session with nothing to lose asks every third of it
# ms: a shorter lease counts as one of so long. It is over before anything can be proved, and with the
# connection all other holds would be lost too. A hold without the watchdog does not end with it.
LEAST, LEAST_PLAIN = 100, 5000
PATIENCE = 30_000  # ms: for so long the program may be silent, if somebody waits for what it has
LEAST_PATIENCE = 300  # ms: the server looks some ten times a second


class Counted(NamedTuple):
    """A lease, in ms, of a hold or a wait."""

    lease: int
    watchdog: bool


def counted(lease: int, watchdog: bool) -> Counted:
    return Counted(max(lease, LEAST if watchdog else LEAST_PLAIN), watchdog)


class Beat:
    """Counts the leases of all holds and waits, as `counted` says. The shortest one sets the pace, and the longest
    one with watchdog is the least patience: a beat comes every third of it, or sooner.

    patience: what the program has set (ms).
    """

    def __init__(self, patience: int = PATIENCE) -> None:
        self._leases: dict[Counted, int] = {}
        self._patience = max(patience, LEAST_PATIENCE)
        self._longest = 0
        self._said = math.inf  # the patience that the server knows; it is not to know any
        self._shortest = IDLE
        self._asked = 0.0
        self.proof = 0.0  # when what was answered last had been sent
        self._since = 0.0  # when the shortest lease came
        self._bound = math.inf  # when those that were there before it want a newer proof

    def add(self, one: Counted, now: float) -> None:
        before, lease = bool(self._leases), one.lease
        self._leases[one] = self._leases.get(one, 0) + 1
        if one.watchdog and lease > self._longest:
            self._longest = lease
        if before and lease >= self._shortest:
            return
        # A proof that is old enough to end a lease which has only just begun ends nothing.
        self._bound = self.dead_at() if before else math.inf
        self._since, self._shortest = now, lease

    def remove(self, one: Counted) -> None:
        left = self._leases.pop(one, 0) - 1
        if left > 0:
            self._leases[one] = left
            return
        if one.lease == self._shortest:
            self._shortest = min((each.lease for each in self._leases), default=IDLE)
        if one.watchdog and one.lease == self._longest:
            self._longest = max((each.lease for each in self._leases if each.watchdog), default=0)

    def start(self, now: float) -> None:
        self._asked = now
        self.proved(now)

    def asked(self, now: float) -> None:
        self._asked = now

    def patience(self) -> int:
        """What the server is to know from now on."""
        self._said = said = max(self._patience, self._longest)
        return said

    def unsaid(self) -> None:
        """The server takes no patience."""
        self._said = math.inf

    def proved(self, sent: float) -> None:
        """Something that was sent then was answered."""
        self.proof = max(self.proof, sent)
        if self.proof >= self._since:
            self._bound = math.inf

    @property
    def third(self) -> float:
        return self._shortest / 3000

    def ask_at(self) -> float:
        """At once, if the server believes that there is less patience than there is."""
        return self._asked + self.third if self._longest <= self._said else self._asked

    def dead_at(self) -> float:
        return min(self._bound, max(self.proof, self._since) + self._shortest / 1000)

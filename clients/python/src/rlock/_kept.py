"""Holds with watchdog where there is no module: nobody renews them but the session.

They outlive their connection, for as long as their lease, and they go with their slot.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ._protocol import BROKEN, Protocol
from ._resp import Failure
from ._states import Call, Held, Request

# Of a node of a cluster: it has not all of the slot.
ELSEWHERE = ("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN")


class Kept(Protocol):
    holds: dict[Held, None]
    holders: dict[bytes, Held]

    def _keep(self, held: Held, now: float) -> None:
        held.kept = True
        lease = held.renewing or held.lease
        if held.deadline is None:  # the server has renewed it until now
            held.deadline = now + lease / 1500
        self._keep_until(held, held.deadline, now)

    def _keep_until(self, held: Held, deadline: float, now: float) -> None:
        """Is renewed every third of its lease: all holds of a lease at the same moments, in one pipeline."""
        held.deadline = deadline
        step = held.lease / 12000
        self._look_at(held, max(math.floor((now + 4 * step) / step) * step, now + 3 * step))

    def _look_at(self, held: Held, at: float) -> None:
        assert held.deadline is not None
        self.timers.cancel(held.pace)
        held.pace = self.timers.at(min(at, held.deadline), partial(self._kept, held))

    def _let_go(self, held: Held) -> None:
        """The server renews it from now on."""
        held.kept, held.deadline = False, None
        self.timers.cancel(held.pace)

    def _kept(self, held: Held, now: float) -> None:
        assert held.deadline is not None
        if now < held.deadline:
            self._renew_kept(held, now)
            self._look_at(held, now + held.lease / 6000)  # if there is no answer
        elif now < self.read_until:
            held.pace = self.timers.at(self.read_until, partial(self._kept, held))
        else:
            self._past(held, now)

    def _renew_kept(self, held: Held, now: float) -> None:
        assert held.deadline is not None
        lease = held.renewing or held.lease

        def answered(reply: Any, now: float) -> None:
            if held.over or held.reason or not held.kept or reply is BROKEN or self._followed(held, call, reply):
                return
            core = held.request.home  # its slot may have moved
            if not isinstance(reply, Failure):
                self.worked()  # PINGs are rare where there are renewals
                core._keep_until(held, call.sent + lease / 1000, now)
            elif why := core._gone(reply, held):
                core._lost(held, why, now)

        call = Call(held.request.ask.renew(held.request.owner, lease), answered, until=held.deadline)
        if self.ready:
            if not self.beats:  # a renewal shows that the server is there, but not that we are
                self.beat.asked(now)
            self.send(call, now)
        elif self.failing:  # perhaps another node has its slot now
            self._followed(held, call, Failure("MOVED", ""))

    def _followed(self, held: Held, call: Call, reply: Any) -> bool:
        """Where nothing but the lease is the server's, a hold goes with its slot. What was to be said of it is said
        there."""
        follows = isinstance(reply, Failure) and reply.code in ELSEWHERE and self.place and self.backend != "module"
        if follows:
            call.again = call.again or call.words
            self._move(*((held,) if held in self.holds else ()), call)
        return bool(follows)

    def hand_over_hold(self, held: Held) -> None:
        """To the session of another node, that adopts it."""
        self._forget(held, moving=True)

    def adopt_hold(self, held: Held, now: float) -> None:
        held.request.home = self
        self.holds[held] = None
        for key in held.request.ask.keys:
            self.holders[key] = held
        self.beat.add(held.request.ask.counted(held.lease), now)
        if held.kept:
            self._keep(held, now)
            if held.ends is not None:
                held.timer = self.timers.at(held.ends, partial(self._max, held))
        elif held.deadline is not None:
            self._until(held, held.deadline)
        if self.ready:
            self._regain(held, now)

    # What a session makes of it.

    def _move(self, *those: Request | Call | Held) -> None: ...

    def _until(self, held: Held, deadline: float) -> None: ...

    def _past(self, held: Held, now: float) -> None: ...

    def _max(self, held: Held, now: float) -> None: ...

    def _regain(self, held: Held, now: float) -> None: ...

    def _forget(self, held: Held, releasing: bool = False, moving: bool = False) -> None: ...

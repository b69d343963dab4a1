"""A lock by a majority of servers, from the first request to the end of the hold. No I/O.

The rules are those of clients/model/README.md, which shows what breaks without each.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ._ask import fresh_owner
from ._member import Member, MemberCore
from ._states import Held, Pending, Request
from .errors import ConnectionError, Lost, NotAcquired, Refused

# s: for how long grants still count when the majority is full. With more servers than it
# needs the hold outlives the loss of one.
GRACE = 0.05
PAUSES = (0.02, 1.0)  # s: after the first attempt without a majority, and at most
RELEASED = 1.0  # s: how long a release waits for servers that do not answer

Step = Callable[[MemberCore, float], object]


class Majority:
    """`act` of whoever runs it (see `_quorum.py`) is how replies come back."""

    def __init__(self, sessions: Sequence[Any], timeout: float, act: Callable[[Any], object]) -> None:
        self.todo: deque[tuple[Any, Step]] = deque()  # to be done to sessions, in this order
        self.calls: list[Callable[[], object]] = []  # and what the program is to be notified by
        self._sessions, self._timeout, self._act = sessions, timeout, act
        self._need = len(sessions) // 2 + 1
        self._phase = "over"  # first, rest, fence, held, pause
        self._end = math.inf  # of the phase
        self._pause = PAUSES[0]
        self._renewals: list[tuple[float, Pending]] = []
        self._releasing: tuple[float, Pending] | None = None

    def ask(self, request: Request, now: float) -> None:
        self._wanted, self._request = request.ask, request
        self._lease = self._wanted.lease / 1000
        self._drift = self._lease / 100 + 0.002  # by which a lease is shorter here than there
        self._patience = request.last  # for servers that are away
        self._begin(now)

    # One attempt.

    def _begin(self, now: float) -> None:
        self._request.owner = fresh_owner()
        self._members = [Member(session, self._request.owner) for session in self._sessions]
        self._phase, self._end = "first", math.inf
        self._first(now)

    def _first(self, now: float) -> None:
        """A waiter queues at one server: the first one that can be reached."""
        member = next((member for member in self._members if not member.request), None)
        if member:
            self._take(member, max(self._request.until - now, 0.001) if self._wanted.wait else 0)
        else:
            self._no_majority(now)

    def _take(self, member: Member, wait: float) -> None:
        wanted = self._wanted._replace(wait=wait)

        def take(core: MemberCore, now: float) -> None:
            request = core.take(member, wanted, lambda: self._replied(member, request), now)

        member.request, member.valid = Request(wanted, member), 0.0  # until that one is there
        self._do(member, take)

    def _replied(self, member: Member, request: Request) -> None:
        self._act(lambda core, now: core._taken(member, request, now))

    def _taken(self, member: Member, request: Request, now: float) -> None:
        if self._phase == "over" or member not in self._members or member.over or member.request is not request:
            return
        if self._phase == "held":
            if member.held:
                self._fence(member, now)
        elif self._phase == "first":
            if member.held:
                self._phase, self._end = "rest", now + self._lease / 2
                for other in self._members:
                    if not other.request:
                        self._take(other, 0)
                self._count(now)
            elif isinstance(request.error, (ConnectionError, Refused)):
                self._first(now)
            else:
                self._no_majority(now)
        elif self._phase == "rest":
            self._count(now)

    def _count(self, now: float) -> None:
        granted = [member for member in self._members if member.held and not member.asking]
        asking = [member for member in self._members if member.asking]
        if len(granted) >= self._need:
            self._end = min(self._end, now + GRACE)
        elif len(granted) + len(asking) < self._need:
            return self._no_majority(now)
        if asking and now < self._end:
            return
        if len(granted) < self._need:
            return self._no_majority(now)
        for member in asking:  # from now on a grant comes too late
            self._retire(member)
        self._token = max(member.held.token for member in granted if member.held)
        self._phase, self._end = "fence", now + self._lease / 2
        self._fencing = set(granted)
        for member in granted:
            self._fence(member, now)

    def _fence(self, member: Member, now: float) -> None:
        def then(counter: int | None, sent: float) -> None:
            self._act(lambda core, now: core._fenced(member, counter, sent, now))

        def lost(reason: str) -> None:
            self._act(lambda core, now: core._gone(member, reason, now))

        self._do(member, lambda core, now: core.fence(member, self._token, now, then, lost))

    def _fenced(self, member: Member, counter: int | None, sent: float, now: float) -> None:
        if self._phase not in ("fence", "held") or member not in self._members or member.over:
            return
        if not member.held:  # lost meanwhile; the notification may come later
            counter = None
        first = member in self._fencing
        self._fencing.discard(member)
        # Above the token: somebody may have been given a greater one. Of a server that was
        # taken anew it says nothing, for the hold has its majority.
        if counter is not None and (counter == self._token or not first):
            member.valid = max(member.valid, sent + self._lease - self._drift)
        elif first:
            self._retire(member)
        if self._phase == "fence":
            self._decide(now)
        for since, pending in list(self._renewals):
            if self._validity() >= since + self._lease - self._drift:
                self._renewals.remove((since, pending))
                self._finish(pending, None)

    def _decide(self, now: float) -> None:
        counts = sum(member.valid > now for member in self._members)
        if counts >= self._need:
            self._request.held = self._held = Held(self._request, self._token)
            self._phase, self._end = "held", now + self._lease / 3
            self._finish(self._request, None)
        elif counts + len(self._fencing) < self._need or now >= self._end:
            self._no_majority(now)

    def _no_majority(self, now: float) -> None:
        """It is over at all members; then it retries, at another time than those who had the rest."""
        error = self._why()
        for member in self._members:
            self._retire(member)
        rest = self._pause * random.uniform(0.5, 1.5)
        self._pause = min(self._pause * 2, PAUSES[1])
        until = self._patience if isinstance(error, ConnectionError) else self._request.until
        if isinstance(error, Refused) and error.code != "NOTYET":
            until = now
        if any(session.core.closed for session in self._sessions):
            until, error = now, ConnectionError("the locks are closed")
        if now + rest < until:
            self._phase, self._end = "pause", now + rest
        else:
            self._phase, self._end = "over", math.inf
            self._finish(self._request, error)

    def _why(self) -> Exception:
        """Servers that are away or refuse are the reason if they leave no majority."""
        errors = [member.request.error for member in self._members if member.request and not member.asking]
        silent = [ConnectionError("no answer") for member in self._members if member.asking]
        unable = [error for error in [*errors, *silent] if isinstance(error, (ConnectionError, Refused))]
        if len(self._members) - len(unable) >= self._need:
            refusals = [error for error in errors if isinstance(error, NotAcquired)]
            return NotAcquired(self._wanted.keys, next((error.held_by for error in refusals if error.held_by), None))
        return next((error for error in unable if isinstance(error, Refused)), unable[0])

    # The hold.

    def _validity(self) -> float:
        return sorted((member.valid for member in self._members), reverse=True)[self._need - 1]

    def _round(self, now: float) -> None:
        """Each server that has it renews it, and the others may have it again."""
        self._end = now + self._lease / 3
        for member in self._members:
            if member.held and not (member.over or member.asking):
                self._fence(member, now)
            elif not (member.over or member.out or member.asking):
                self._take(member, 0)

    def _gone(self, member: Member, reason: str, now: float) -> None:
        if self._phase not in ("fence", "held") or member not in self._members:
            return
        member.valid = 0.0
        self._fencing.discard(member)
        if self._phase == "fence":
            self._decide(now)
        elif self._validity() <= now:
            self._lose(reason)

    def _lose(self, reason: str) -> None:
        """For ever, and released at all servers, the silent ones too."""
        held = self._held
        self._phase, self._end, held.reason = "over", math.inf, reason
        for member in self._members:
            self._retire(member)
        for listener in held.listeners or ():
            self.calls.append(partial(listener, reason))
        self.calls += held.rings()
        held.listeners = None
        for _, pending in self._renewals:
            self._finish(pending, Lost(reason, self._wanted.name))
        self._renewals.clear()

    # As of a session: what a hold of the program wants.

    def renew(self, held: Held, lease: int | None, now: float, pending: Pending) -> None:
        if held.reason or held.over:
            pending.finished, pending.error = True, Lost(held.reason or "released", self._wanted.name)
        elif lease not in (None, held.lease):
            # A late copy of a RENEW with a shorter lease would end what is believed in.
            pending.finished, pending.error = True, ValueError("the lease of a hold by quorum does not change")
        else:
            self._renewals.append((now, pending))
            self._round(now)

    def due(self, held: Held, now: float) -> str | None:
        return "lease" if self._phase == "held" and self._validity() <= now else None

    def lose(self, held: Held, reason: str, now: float) -> None:
        if self._phase == "held":
            self._lose(reason)

    def release(self, held: Held, now: float, pending: Pending) -> None:
        if held.over or held.reason or held.more:
            if held.reason and not held.over:
                pending.error = Lost(held.reason, self._wanted.name)
            if held.more and not held.over:
                held.more.pop()
            held.over = held.over or held.reason is not None
            pending.finished = True
            return
        held.over = True
        self.calls += held.rings()
        self._phase, self._end = "over", now + RELEASED
        self._releasing = (self._end, pending)
        for _, renewal in self._renewals:
            self._finish(renewal, Lost("released", self._wanted.name))
        self._renewals.clear()
        had = [member for member in self._members if member.valid > now]
        left, lacking = set(self._members), len(had) - self._need

        def over(member: Member, error: Exception | None, now: float) -> None:
            nonlocal lacking
            left.discard(member)
            if member in had and isinstance(error, Lost):
                lacking -= 1
                if lacking < 0:  # it was lost already, and we had not been notified
                    pending.error = error
            if not left:
                self._finish(pending, pending.error)
            elif len(left) <= len(self._members) - self._need:
                self._end = min(self._end, now + GRACE)

        for member in self._members:
            self._retire(member, partial(self._over, member, over))

    def _over(self, member: Member, over: Any, error: Exception | None) -> None:
        self._act(lambda core, now: over(member, error, now))

    def give_up(self, request: Request, now: float) -> None:
        """The program does not want it any more."""
        if request.finished:
            if request.held:
                request.held.more = None
                self.release(request.held, now, Pending())
            return
        request.finished = True
        if self._phase != "pause":
            for member in self._members:
                self._retire(member)
        self._phase, self._end = "over", math.inf

    # Time.

    def next_time(self) -> float:
        times = [self._end, *(since + self._timeout for since, _ in self._renewals)]
        return min(*times, self._validity()) if self._phase == "held" else min(times)

    def tick(self, now: float) -> None:
        if self._phase == "held" and self._validity() <= now:
            return self._lose("lease")
        for since, pending in list(self._renewals):
            if now >= since + self._timeout:
                self._renewals.remove((since, pending))
                self._finish(pending, ConnectionError("no answer to the renewal"))
        if now < self._end:
            return
        if self._phase == "held":
            self._round(now)
        elif self._phase == "rest":
            self._count(now)
        elif self._phase == "fence":
            self._decide(now)
        elif self._phase == "pause":
            self._begin(now)
        elif self._releasing:
            self._end = math.inf
            self._finish(self._releasing[1], self._releasing[1].error)

    # Small things.

    def _do(self, member: Member, step: Step) -> None:
        self.todo.append((member.session, step))

    def _retire(self, member: Member, then: Callable[[Exception | None], object] = lambda error: None) -> None:
        member.over, member.valid = True, 0.0
        self._do(member, lambda core, now: core.retire(member, now, then))

    def _finish(self, pending: Pending, error: Exception | None) -> None:
        if not pending.finished:
            pending.finished, pending.error = True, error
            self.calls.append(pending.done)

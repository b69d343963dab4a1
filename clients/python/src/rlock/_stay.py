"""What a loop has of a sticky lock: the lock itself, who uses it, who waits for it. See "Sticky" in clients/README.md.

A use takes and leaves the lock by itself, without a word to the loop, as long as nothing speaks against it. Everything else is a
step of the loop, by `look`: whatever has happened, it does what follows.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ._ask import Ask
from ._backoff import Backoff
from ._beat import Beat
from ._clock import Timer, now
from ._loss import over
from ._resp import Failure
from ._protocol import BROKEN, LATE
from ._states import Call, Held, Hint, Pending, Request
from .errors import ConnectionError, Error, Lost, NotAcquired, Refused

LEAST = 0.02  # s: so long uses follow each other although somebody else waits
MOST = 1.0  # s: then it goes back although nobody says that he waits: who polls is to have a chance
PAUSE = 0.01  # s: of that length


class Turn:
    """Of one use. Who has it has the lock, in this process."""

    request: Request  # of the hold
    token: int | None = None  # of this use, once the program has read it
    asks: list[Pending] | None = None  # who waits for that
    told = False  # that the hold is lost
    who: Any = None  # for the face
    over = False
    outer: Turn | None = None  # within which it has begun


class Waiting(Pending):
    """A use that waits for its turn."""

    __slots__ = ("last", "turn", "until")

    def __init__(self, turn: Turn, wait: float, timeout: float) -> None:
        super().__init__()
        self.turn = turn
        self.until = now() + wait
        self.last = max(self.until, now() + timeout)  # without a word of the server


class Stay:
    def __init__(self, loop: Any, ask: Ask, idle: float, lost: Callable[[Turn], object] = lambda turn: None) -> None:
        self.loop, self.ask, self.idle = loop, ask, idle
        self.half = ask.counted().lease / 2000  # s: for so long a proof of the connection is good
        self.lost = lost
        # By the key None the turn that has the lock, or the loop itself while it looks. To take it is one step.
        self.has: dict[None, object] = {}
        self.line: deque[Waiting] = deque()
        # Until then a use needs to ask nobody, should the connection be proved. 0: the loop has to look first.
        self.until = 0.0
        self.beat = Beat()  # of the session that has the lock
        self.request: Request | None = None  # an acquisition, or what came of it
        self.held: Held | None = None  # once that is known here
        self.used = 0.0  # when the last use ended
        self._pause = 0.0  # until then it is not acquired
        self._served = False  # a use has had it since its grant
        self.uses = 0  # that have ended since
        self._backoff = Backoff()
        self._read = False  # its token was read
        self._unsure = False  # what its token is nobody knows
        self.closed = False
        self._going = 0  # releases without an answer
        self._closing: list[Pending] = []  # who waits for those
        self._proves = False
        self._ends: list[Pending] = []  # uses that end, but ask first whether they had it
        self._timer: Timer | None = None

    def leave(self, turn: Turn) -> None:
        """By the use itself. By the loop only once that does not do it any more."""
        if self.has.get(None) is turn:
            del self.has[None]

    def _in_use(self) -> bool:
        return isinstance(self.has.get(None), Turn)

    def away(self) -> bool:
        """The lock is lost, or was never had."""
        held = self.held
        return held is None or held.over or held.reason is not None

    # Steps of the loop.

    def begin(self, waiting: Waiting, at: float) -> None:
        if waiting.finished or waiting.begun:
            return
        waiting.begun = True
        if self.closed:
            self._answer(waiting, ConnectionError(f"the sticky lock of {self.ask.name} is closed"))
            return
        self.loop.stays.add(self)
        self.line.append(waiting)
        self._limit(waiting, waiting.until)
        self.look(at)

    def give_up(self, waiting: Waiting, at: float) -> None:
        """Nobody wants that use any more."""
        waiting.begun = True
        if waiting in self.line:
            self._leave(waiting, None, at)
        self.end(waiting.turn, at)

    def end(self, turn: Turn, at: float) -> None:
        """Of a use that has not ended itself."""
        self.leave(turn)
        self.look(at)

    def close(self, pending: Pending, at: float) -> None:
        """`pending` is over when the server has answered to the release; at once if a use is under way."""
        self.closed = True
        self._leave_all(ConnectionError(f"the sticky lock of {self.ask.name} is closed"), at)
        waits = self._going or not (self._in_use() or self.away())
        self._closing.append(pending)
        self.look(at)
        if not waits:
            self._gone()

    def locks_closed(self, at: float) -> None:
        self._leave_all(ConnectionError("the locks are closed"), at)
        self.look(at)

    def look(self, at: float) -> None:
        """Does what follows from what there is. While a use is under way that is nothing: at its end it looks again."""
        self._mark(at)
        user = self.has.setdefault(None, self)
        if user is self:
            try:
                self._look(at)
            finally:
                if self.has.get(None) is self:
                    del self.has[None]
        elif isinstance(user, Turn) and not user.told and self.held and self.held.reason:
            user.told = True
            self.lost(user)
        if self._ends and (self.away() or at < self.beat.proof + self.half):
            ends, self._ends = self._ends, []
            for pending in ends:
                self._answer(pending, None)
        elif self._ends:
            self._prove(at)
        self._mark(at)
        self._wind(at)

    def _mark(self, at: float) -> None:
        """Before anything else is looked at: a use that has the turn already sees it at its end."""
        if self.away() or self._leaves(at):
            self.until = 0.0

    def _look(self, at: float) -> None:
        held = self.held
        if held and self.away():
            self.request = self.held = None
        elif held and self._leaves(at):
            self._go_back(held, at)
        if self.line and self.request is None and at >= self._pause:
            self._acquire(at)
        if self.line and not self.away():
            if at < self.beat.proof + self.half:
                self._give(self.line.popleft(), at)
            else:
                self._prove(at)

    def _leaves(self, at: float) -> bool:
        """Whether it goes back when no use is under way."""
        held = self.held
        if held is None:
            return False
        home, hint, alone = held.request.home, held.hint, not self.line
        if self.closed or self._unsure or (alone and self._backoff.left):
            return True
        if hint is None or not home.hints or home.backend != "module":  # nobody would say that somebody waits
            return self._served or alone
        if hint.said > -math.inf:
            return alone or (self._served and at >= held.since + LEAST)
        if at >= held.since + MOST:
            return alone or self._served
        return alone and not self._in_use() and at >= self.used + self.idle

    def _go_back(self, held: Held, at: float) -> None:
        wanted = held.hint is not None and held.hint.said > -math.inf
        self.until, self.request, self.held = 0.0, None, None
        self._backoff.went_back(self.uses, wanted)
        if not wanted and at >= held.since + MOST:
            self._pause = at + PAUSE
            self.loop.timers.at(self._pause, self.look)
        pending = Pending()
        self._going += 1
        pending.done = self._gone_back
        held.request.home.release(held, at, pending)

    def _gone_back(self) -> None:
        self._going -= 1
        if not self._going:
            self._gone()

    def _gone(self) -> None:
        closing, self._closing = self._closing, []
        for pending in closing:
            self._answer(pending, None)

    def _acquire(self, at: float) -> None:
        self.request = request = Request(self.ask)
        request.hint = Hint()
        request.done, request.stood = partial(self._came, request), partial(self._stands, request)
        self.loop.router.ask(request, at)

    def _came(self, request: Request) -> None:
        at, held = now(), request.held
        if request is not self.request:
            return
        if held is None:
            self.request = None
            self._leave_all(request.error, at)
            return
        self.held, held.stay = held, self
        held.outlived = True  # by which token it ends nobody need know: that owner has nothing else
        self.beat = held.request.home.beat
        self.used, self.uses, self._served, self._read, self._unsure = at, 0, False, False, False
        if not self.away():
            self.until = held.since + MOST
        held.listeners = [lambda reason: self.look(now())]
        if held.hint:
            held.hint.waiting[self._rung] = None
        self.look(at)

    def _rung(self) -> None:
        """It is wanted, or over."""
        self.look(now())

    def _give(self, waiting: Waiting, at: float) -> None:
        assert self.request
        self._served = True
        waiting.turn.request = self.request
        self.has[None] = waiting.turn
        self._mark(at)  # before it can end
        self._answer(waiting, None)

    def _prove(self, at: float) -> None:
        """What the server has said of the lock until now is read before its answer."""
        assert self.request
        home = self.request.home
        if self._proves or not home.ready:  # else it would not be sent, and the next look is soon
            return
        self._proves = True

        def answered(reply: Any, now: float) -> None:
            self._proves = False
            self.look(now)

        home.send(Call(("PING",), answered), at)

    def prove(self, pending: Pending, at: float) -> None:
        """For a use that ends, and has heard nothing for too long."""
        if pending.begun:
            return
        pending.begun = True
        self._ends.append(pending)
        self.look(at)

    # Those who wait.

    def _limit(self, waiting: Waiting, until: float) -> None:
        def due(at: float) -> None:
            # Later than that is only a process that was paused: the answer may lie unread.
            if at > until + LATE:
                self._limit(waiting, at + LATE)
            else:
                self._overdue(waiting, at)
                self.look(at)

        waiting.timer = self.loop.timers.at(until, due)

    def _overdue(self, waiting: Waiting, at: float) -> None:
        request, held = self.request, self.held
        home = request and request.home
        if self._in_use():  # one of ours uses it
            self._leave(waiting, NotAcquired(self.ask.keys, held.request.owner if held else None), at)
        elif home and home.ready and request and request.queued and not held:
            self._leave(waiting, NotAcquired(self.ask.keys), at)
        elif at < waiting.last:
            self._limit(waiting, waiting.last)
        else:
            why = home.trouble if home and not home.ready else ""
            self._leave(waiting, ConnectionError(f"no connection to the server: {why or 'no answer'}"), at)

    def _stands(self, request: Request) -> None:
        """The server has said that somebody else has it: so much is known for who is here no longer."""
        at = now()
        for waiting in [waiting for waiting in self.line if request is self.request and waiting.until <= at]:
            self._overdue(waiting, at)

    def _leave(self, waiting: Waiting, error: Exception | None, at: float) -> None:
        self.line.remove(waiting)
        self._answer(waiting, error)
        request = self.request
        if not self.line and request and not request.held:
            self.request = None
            request.give_up(at)

    def _leave_all(self, error: Exception | None, at: float) -> None:
        for waiting in list(self.line):
            self._leave(waiting, copy.copy(error), at)

    def _answer(self, pending: Pending, error: Exception | None) -> None:
        if not pending.finished:
            pending.finished, pending.error = True, error
            self.loop.timers.cancel(pending.timer)
            pending.done()

    def _wind(self, at: float) -> None:
        """When to look again."""
        held = self.held
        if held is None or self.away() or self._timer:
            return
        if self._in_use() or self.line:
            due = at + max(self.idle, 0.01)
        else:
            due = min(self.used + self.idle, held.since + MOST)
        self._timer = self.loop.timers.at(max(due, at), self._due)

    def _due(self, at: float) -> None:
        self._timer = None
        self.look(at)

    # Tokens.

    def token(self, turn: Turn, pending: Pending, at: float) -> None:
        """The acquisition's is for the first use that reads it. Each other one asks for a new one."""
        held = turn.request.held
        if pending.begun or held is None:
            return
        pending.begun = True
        why = over(turn.request, self.loop) or (None if self.has.get(None) is turn else "released")
        if why:
            self._answer(pending, Lost(why, self.ask.name))
        elif turn.token is not None:
            self._answer(pending, None)
        elif not self._read:
            self._read, turn.token = True, held.token
            self._answer(pending, None)
        elif turn.asks is not None:
            turn.asks.append(pending)
        else:
            turn.asks = [pending]
            self._renew(turn, held, at)

    def _renew(self, turn: Turn, held: Held, at: float) -> None:
        home, pending = held.request.home, Pending()

        def ends(error: Error | None) -> None:
            asks, turn.asks = turn.asks or [], None
            home._finish(pending, error)
            for one in asks:
                self._answer(one, copy.copy(error))

        def fails(error: Error, at: float) -> None:
            if not pending.finished:
                self._unsure = True
                ends(error)
                self.look(at)

        def answered(reply: Any, at: float) -> None:
            if isinstance(reply, int) and not pending.finished:
                turn.token = reply
                ends(None)
            elif isinstance(reply, Failure):
                if why := home._gone(reply, held):
                    home._lost(held, why, at)
                fails(Lost(why, self.ask.name) if why else Refused(*reply), at)
            elif reply is BROKEN:
                fails(Lost("connection", self.ask.name), at)

        words = (*held.request.ask.renew(held.request.owner, held.lease), "TOKEN")
        home.limit(pending, at + home.timeout, lambda at: fails(ConnectionError("no answer to the renewal"), at))
        home.send(Call(words, answered), at)

"""A session without its socket: the requests, the holds, and what becomes of each.

Everything that both faces share is here; see clients/README.md for the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ._acks import WHO, run_id
from ._ask import fresh_owner
from ._backend import ONE_NODE, Backend
from ._beat import PATIENCE
from ._holds import Holds, unknown_hint
from ._kept import ELSEWHERE
from ._lines import Lines
from ._protocol import BROKEN
from ._resp import Failure
from ._states import Call, Held, Pending, Request, nothing
from .errors import ConnectionError, Deadlock, Error, HeldByJob, Lost, NotAcquired, Refused

# s: until a server is asked again that has just started, and grants nothing yet; or has to take what
# ends the last one first.
NOTYET = 0.5


class Core(Holds):
    waits_for_start = True
    single = True  # what it holds is at no other server

    def __init__(
        self,
        timeout: float,
        place: Callable[[], str | None] | None = None,
        need: Backend | None = None,
        patience: int | None = PATIENCE,
    ) -> None:
        super().__init__(timeout, place, need, patience)
        self.lines = Lines(self)
        self.requests: dict[Request, None] = {}
        self.unsure: list[Request] = []  # granted, and waiting for acks
        self.on_unsure: Callable[[], object] = list
        self.run = ""  # which run of the server it is, once it matters

    @property
    def busy(self) -> bool:
        return bool(self.requests) or super().busy

    # A request.

    def adopt(self, request: Request, now: float) -> None:
        """Is with this session from now on."""
        request.home = self
        if request.ask.wait < math.inf:
            first = request.until if request.ask.wait else request.last
            self.limit(request, first, partial(self._overdue, request))
        self.requests[request] = None
        self.beat.add(request.ask.counted(), now)
        self.hurry(now)
        if self.ready:
            self._send_request(request, now)

    def resend(self, request: Request, now: float) -> None:
        if request in self.requests and request.tag is None and self.ready:
            self._send_request(request, now)

    def hand_over(self, request: Request) -> None:
        """To another session, that adopts it."""
        request.home = None
        self.timers.cancel(request.timer)
        del self.requests[request]
        self._unasked(request)
        self.beat.remove(request.ask.counted())

    def take_moved(self) -> list[Request | Call | Held]:
        moved, self.moved = dict.fromkeys(self.moved), []
        return [one for one in moved if isinstance(one, Call) or one in self.requests or one in self.holds]

    def give_up(self, request: Request, now: float) -> None:
        held = request.held
        if held and not held.over:
            held.more = None
            self.release(held, now)
        if not request.finished:
            self._end(request, None)
            if not held:
                self._call_off(request, now)

    def give_way(self, held: Held, request: Request, now: float, pending: Pending) -> None:
        """Releases it, and `request`, of the same owner perhaps, may be sent right behind that."""
        self.release(held, now, pending)
        request.behind = (self, pending)

    def _send_request(self, request: Request, now: float) -> None:
        if until := self._blocked(request, now):
            self.timers.at(min(until, now + NOTYET), partial(self.resend, request))
            return
        ask, request.tag, request.queued = request.ask, next(self._tags), False
        self._table[str(request.tag)] = request
        if self.backend != "module":
            self._try(request, now)
            return
        request.sent = now
        left = max(request.until - now, 0.001) if ask.wait else None
        hint = request.hint is not None and self.hints
        words = ask.acquire(request.owner, left, self.channel, request.tag, hint)
        self.send(Call(words, partial(self._answered, request, request.tag)), now)

    def _try(self, request: Request, now: float) -> None:
        """Where there is no module. A release by token is unknown there: so that what ends one hold cannot end the
        job's next one, each has an owner of its own."""
        if request.job and not request.job.given and not request.sent:
            request.owner = fresh_owner()
        if request.ask.wait:
            self.lines.join(request, now)
        else:
            request.sent = now
            self.send(Call(request.ask.attempt(request.owner), partial(self._answered, request, request.tag)), now)

    def _blocked(self, request: Request, now: float) -> float:
        if request.behind:
            core, released = request.behind
            if core is self and not released.finished:  # it is ahead on this very connection
                return 0.0
        return request.job.blocked(request.ask.keys, now) if request.job else 0.0

    def _call_off(self, request: Request, now: float) -> None:
        """Both, one behind the other: then the owner has nothing, whatever crossed it."""
        if request.sent:
            ask, owner = request.ask, request.owner
            cancel = (ask.cancel(owner),) if self.backend in (None, "module") else ()
            for words in (*cancel, ask.release_all(owner)):
                self.send(self._ending(request, words, now, waits=True), now)

    def _answered(self, request: Request, tag: int | None, reply: Any, now: float) -> None:
        if request.tag != tag or request.finished or request.held or reply is BROKEN:
            return
        if isinstance(reply, Failure):
            if request.hint and unknown_hint(reply):
                request.hint, self.hints = None, False
                self._unasked(request)
                self._send_request(request, now)
            else:
                self._failed(request, reply.code, reply.text, now)
            return
        self.worked()
        if reply is None:
            self._end(request, self._not_acquired(request))
        elif isinstance(reply, int):
            self._granted(request, reply, now, waited=False)
        else:
            request.queue(self.calls)

    def _notified(self, word: str, tag: str, rest: str, now: float) -> None:
        entry = self._table.get(tag)
        if isinstance(entry, Held):
            if word == "lost":
                self._lost(entry, rest, now)
            elif word == "wanted":
                self._wanted(entry, now)
        elif entry is None or entry.finished:
            return
        elif word == "granted":
            token, *more = rest.split(" ")
            if token.isdecimal():
                self._granted(entry, int(token), now, waited=True)
            if entry.held and "wanted" in more:
                self._wanted(entry.held, now)
        elif word == "wanted":  # ahead of the reply
            if entry.hint:
                entry.hint.said = now
        elif word == "timeout":
            self._end(entry, self._not_acquired(entry))
        elif word == "error":
            code, _, text = rest.partition(" ")
            self._failed(entry, code, text, now)
        elif word == "lost":
            self._end(entry, Lost(rest, entry.ask.name))
        if word == "lost" and rest == "demoted":
            self.drop = "the server is a replica now"

    def _failed(self, request: Request, code: str, text: str, now: float) -> None:
        if code == "UNBLOCKED":
            self.drop = f"{code} {text}"  # it is asked for again, at the master
        elif code == "NOTYET" and self.waits_for_start:
            self._unasked(request)
            self.timers.at(now + NOTYET, partial(self.resend, request))
        elif code == "SUPERSEDED" and request.before:  # by what it said on a connection that is gone, and that came late
            request.before = False
            self._unasked(request)
            self.resend(request, now)
        elif self.place and code in ELSEWHERE:
            self._unasked(request)
            self._move(request)
        elif code == "DEADLOCK":
            self._end(request, Deadlock(text))
        elif code == "MOVED" or (code == "ERR" and "SSUBSCRIBE" in text and not self.place):
            self._end(request, Refused(code, ONE_NODE))
        else:
            self._end(request, Refused(code, text))

    def _unasked(self, request: Request) -> None:
        self._table.pop(str(request.tag), None)
        request.tag = None
        self.lines.leave(request)

    def _overdue(self, request: Request, now: float) -> None:
        """Its time is over, or there was no connection for too long."""
        if request.held:
            return  # granted: it ends by itself soon
        # Who has it only the server can say: without its answer nobody knows that somebody has.
        at = request.until + self.timeout if self.ready and request.queued else request.last
        if now < at:
            self.limit(request, at, partial(self._overdue, request))
            if request.line:
                self.lines.last_try(request, now)
            return
        why = "no answer" if self.ready else self.trouble or "it takes too long"
        error: Error = ConnectionError(f"no connection to the server: {why}")
        if self.ready and self._blocked(request, now):
            error = HeldByJob(f"{request.ask.name}: the server has not taken what ends the job's last hold or wait of it")
        self._end(request, error)
        self._call_off(request, now)

    def _not_acquired(self, request: Request) -> NotAcquired:
        keys = request.ask.keys
        ours = next((held for held in map(self.holders.get, keys) if held), None)
        return NotAcquired(keys, ours.request.owner if ours else None)

    def _end(self, request: Request, error: Exception | None, notify: bool = True) -> None:
        request.finished, request.error = True, error
        self.lines.leave(request)
        self.timers.cancel(request.timer)
        self.requests.pop(request, None)
        if not request.held:
            self._table.pop(str(request.tag), None)
            self.beat.remove(request.ask.counted())
            if request.job:
                request.job.give(request)
        if notify:
            self.calls.append(request.done)
        request.done, request.stood, request.timer = nothing, None, None  # what a hold need not keep

    # A grant.

    def _granted(self, request: Request, token: int, now: float, waited: bool) -> None:
        ask = request.ask
        held = Held(request, token)
        held.since, held.hint = now, request.hint if self.hints else None
        request.held, self.holds[held] = held, None
        del self.requests[request]  # it is always in one of the two
        self.lines.leave(request)
        self._table[str(request.tag)] = held
        for key in ask.keys:
            self.holders[key] = held
        if ask.max is not None:
            held.ends = now + ask.max
            held.timer = self.timers.at(held.ends, partial(self._max, held))
        if ask.watchdog:
            if self.backend != "module":
                held.deadline = request.sent + ask.lease / 1000
                self._keep(held, now)
            self._check(request, now)
        elif waited:  # how much of the lease is gone nobody knows: count from a renewal
            self._until(held, now + ask.lease / 1000)
            words = ask.renew(request.owner, ask.lease)
            self._renew(held, words, ask.lease, partial(self._confirmed, request), now)
        else:
            self._until(held, request.sent + ask.lease / 1000)
            self._check(request, now)

    def _confirmed(self, request: Request, error: Exception | None, now: float) -> None:
        if not error:
            self._check(request, now)
        elif not request.finished:
            self._end(request, error)
            if request.held and not request.held.reason:
                self.release(request.held, now)

    def _check(self, request: Request, now: float) -> None:
        held = request.held
        if not held or request.finished:
            return
        if held.deadline is not None and held.deadline <= now:
            self._past(held, now)
        elif request.ask.acks:
            self.unsure.append(request)
            if self.run:
                self.calls.append(self.on_unsure)
            else:  # of which server?
                self.send(Call(WHO, self._identified), now)
        else:
            self._give(request)

    def _identified(self, reply: Any, now: float) -> None:
        self.run = run_id(reply)
        if self.run:
            self.calls.append(self.on_unsure)

    def take_unsure(self) -> list[Request]:
        """Those for whom acks are to be asked from now on."""
        unsure, self.unsure = self.unsure, []
        return unsure

    def acked(self, request: Request, error: Exception | None, now: float) -> None:
        """Whether enough replicas have it was found out."""
        if request.finished:
            return
        if not error:
            self._give(request)
        elif request.held:
            self._end(request, error)
            self.release(request.held, now)

    def _give(self, request: Request) -> None:
        if request.held:
            request.held.given = True
        self._end(request, None)

    # The connection.

    def _open(self, now: float) -> None:
        for held in list(self.holds):
            self._regain(held, now)
        for request in list(self.requests):
            self._send_request(request, now)

    def _going_over(self, now: float) -> None:
        if self.backend == "module":
            self.lines.dissolve(now)
        for held in self.holds:
            held.outlived = True  # the module does not know its token
            if held.request.ask.watchdog and not held.kept and self.backend != "module":
                self._keep(held, now)
        for request in self.requests:
            self._unasked(request)

    def _heard(self, channel: bytes, now: float) -> None:
        self.lines.message(channel, now)

    def _deaf(self, channel: bytes, now: float) -> None:
        self.lines.deaf(channel, now)

    def _broken(self, now: float) -> None:
        self._table.clear()
        self.hints = True
        self.lines.clear()
        self.run = ""
        for request in self.requests:
            request.before |= request.tag is not None
            request.tag = None
        for held in [held for held in self.holds if held.request.ask.watchdog and not held.kept]:
            self.add_pending(self._freed(held.request, now), now)
            self._lost(held, "connection", now)
        for held in self.holds:
            held.outlived = True
        if self.place and self.failing:  # perhaps another node has its slots now
            pending_commands, self.pending_commands = self.pending_commands, []
            self._move(*self.requests, *pending_commands)

    def _unsubscribed(self, now: float) -> None:
        """All waits there are over, and the slots are to be read again."""
        for request in self.requests:
            self._unasked(request)
        self._move(*self.requests)
        self.calls.append(self.on_moved)

    def _never(self, code: str, text: str, now: float) -> None:
        """The server does not let us in: nobody need wait for that to change."""
        if self.place and code in ELSEWHERE:
            self._move(*self.requests)
            return
        for request in list(self.requests):
            self._end(request, Refused(code, text))

    def close(self, now: float) -> None:
        """Nothing is asked from now on; what is held is released."""
        if self.closed:
            return
        self.closed, self.leave_by = True, now + self.timeout
        self.hurry(now)
        for request in list(self.requests):
            self._end(request, ConnectionError("the locks are closed"))
            self._call_off(request, now)
        for held in list(self.holds):
            if not held.request.finished:  # it was to be given to the program soon
                self._end(held.request, ConnectionError("the locks are closed"))
            held.more = None
            self.release(held, now)
            held.over = False  # the program has not released it
            self._closing(held, "closed")

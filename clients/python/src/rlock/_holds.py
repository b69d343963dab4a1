"""The holds of a session: their release, renewal, and loss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ._ask import Ask, ms_up
from ._backend import Backend
from ._beat import PATIENCE
from ._kept import ELSEWHERE, Kept
from ._protocol import BROKEN
from ._resp import Failure, Word
from ._states import Call, Held, Hint, Pending, Request
from .errors import ConnectionError, Lost, Refused

# s: how long the server keeps the place of a request whose connection broke.
PLACE = 15.0
HINT = 1.0  # s: until it is asked again whether a hold is wanted, where that was no time for it


def unknown_hint(reply: Failure) -> bool:
    """An older module."""
    return reply.code == "ERR" and reply.text.startswith("syntax error")


def no_hints(reply: Failure) -> bool:
    """That, or a user who may not."""
    return reply.code == "NOPERM" or unknown_hint(reply)


def counted_keys(reply: Any) -> float:
    """How many holds MRELEASE says it has ended."""
    return reply if isinstance(reply, int) else math.inf


class Holds(Kept):
    def __init__(
        self,
        timeout: float,
        place: Callable[[], str | None] | None = None,
        need: Backend | None = None,
        patience: int | None = PATIENCE,
    ) -> None:
        super().__init__(timeout, place, need, patience)
        self.moved: list[Request | Call | Held] = []  # for whoever has their slot now
        self.on_moved: Callable[[], object] = list
        self.holds: dict[Held, None] = {}
        self.holders: dict[bytes, Held] = {}  # of each key, the last one
        self._table: dict[str, Request | Held] = {}
        self._tags = itertools.count(1)
        self.hints = True  # on this connection the server can say that a hold is wanted

    @property
    def busy(self) -> bool:
        return bool(self.holds) or super().busy

    def _move(self, *those: Request | Call | Held) -> None:
        if those:
            self.moved += those
            self.calls.append(self.on_moved)

    def _ending(self, request: Request, words: tuple[Word, ...], now: float, waits: bool = False) -> Call:
        """What ends what its owner has, or waits for. It is retried until the server has taken it: what
        is there with watchdog, or waits, stays as long as the connection."""
        lease = request.ask.lease
        if held := request.held:
            lease = max(held.lease, held.renewing or 0)
        lasts = max(lease / 1000, PLACE) if waits else lease / 1000
        stays = waits or request.ask.watchdog
        call = Call(words, None, words, math.inf if stays else now + lasts, lasts)
        if request.job:
            call.job, call.ends = request.job, request.ask.keys
            request.job.ends(call, now)
        return call

    def _tidied(self, call: Call, reply: Any, now: float) -> None:
        """What the server refuses is retried, for nobody else will."""
        if not isinstance(reply, Failure) or reply.code in ("NOTHELD", "WRONGTYPE"):
            self._taken(call, now)
        elif self.place and reply.code in ELSEWHERE:
            call.parted(now)
            self._move(call)
        elif now < call.until:
            self.retry_later(call, now)

    def _taken(self, call: Call, now: float) -> None:
        """What its job asks for next may be asked for now, perhaps at another node."""
        for request in call.job.ended(call) if call.job else ():
            home = request.home
            if home:
                home.calls.append(partial(home.resend, request, now))
                self.calls.append(list)

    def release(self, held: Held, now: float, pending: Pending | None = None) -> Pending:
        """Over when the server has answered, or cannot any more. Never asks twice."""
        pending = pending or Pending()
        ask, owner = held.request.ask, held.request.owner
        gone = held.over or held.reason is not None
        if held.reason and not held.over:
            pending.error = Lost(held.reason, ask.name)
        if held.more and not held.over:  # one of `again`
            held.more.pop()
            pending.finished = True
            return pending
        if gone:
            ask = held.request.left()
        if gone and (held.over or len(held.request.ask.keys) == 1 or not ask.keys):
            pending.finished = held.over = True
            return pending
        held.over = True
        counted = not gone
        if counted:
            self._forget(held, releasing=True)
        call = self._ending(held.request, self._release_words(held, ask), now)
        call.again = ask.release_all(owner)

        def answered(reply: Any, now: float) -> None:
            nonlocal counted
            if self._followed(held, call, reply):
                return
            self._table.pop(str(held.tag), None)
            if counted:  # until now the heartbeat was as quick as the hold wants it
                self.beat.remove(held.request.ask.counted(held.lease))
                counted = False
            call.answered = None
            if reply is not BROKEN:
                self._tidied(call, reply, now)
            if isinstance(reply, Failure):
                why = self._gone(reply, held)
                self._finish(pending, Lost(why, ask.name) if why else Refused(*reply))
            elif held.kept and counted_keys(reply) < len(ask.keys) > 1 and not pending.error:
                self._finish(pending, Lost("deleted", ask.name))  # the server released fewer than it was to
            elif held.reason and not pending.error:  # notified before the reply
                self._finish(pending, Lost(held.reason, ask.name))
            else:
                self._finish(pending, pending.error)

        if self.ready:
            self.limit(pending, now + self.timeout, lambda now: self._finish(pending, pending.error))
        call.answered = answered
        self.send(call, now)
        if not self.ready:
            answered(BROKEN, now)
            pending.finished = True
        return pending

    def renew(self, held: Held, lease: int | None, now: float, pending: Pending) -> None:
        ask = held.request.ask
        lease = lease or held.lease
        if held.reason or held.over:
            pending.finished, pending.error = True, Lost(held.reason or "released", ask.name)
            return

        def finish(error: Exception | None, now: float) -> None:
            self._finish(pending, error)

        def late(now: float) -> None:
            self._finish(pending, ConnectionError("no answer to the renewal"))

        self.limit(pending, now + self.timeout, late)
        self._renew(held, ask.renew(held.request.owner, lease), lease, finish, now)

    def due(self, held: Held, now: float) -> str | None:
        """Why it is lost, for a program that looks before the session does. Read from any thread."""
        if held.over:
            return None
        if held.deadline is not None and held.deadline <= now:
            return "lease"
        if held.ends is not None and held.ends <= now:
            return "max"
        dead = self.connected and self._dead_at() <= now and not self._stood_still(now)
        return "connection" if held.request.ask.watchdog and dead and not held.kept else None

    def lose(self, held: Held, reason: str, now: float) -> None:
        """The program has seen it so."""
        if held.reason or held.over:
            return
        if reason == "connection":
            self.drop = self.drop or "the server does not answer"
        else:
            self._end_hold(held, reason, now)

    def _renew(self, held: Held, words: Any, lease: int, then: Callable[[Exception | None, float], None], now: float) -> None:
        def answered(reply: Any, now: float) -> None:
            if self._followed(held, call, reply):
                return
            core = held.request.home
            if reply is not BROKEN:
                held.renewing = None
            if held.reason:
                then(Lost(held.reason, held.request.ask.name), now)
            elif isinstance(reply, Failure):
                if why := core._gone(reply, held):
                    core._lost(held, why, now)
                then(Lost(why, held.request.ask.name) if why else Refused(*reply), now)
            elif reply is BROKEN:
                if held.request.ask.watchdog and not held.kept:
                    then(Lost("connection", held.request.ask.name), now)
            else:
                if not held.over:
                    core.beat.add(held.request.ask.counted(lease), now)
                    core.beat.remove(held.request.ask.counted(held.lease))
                    held.lease = lease
                    if held.kept:
                        core._keep_until(held, call.sent + lease / 1000, now)
                    elif not held.request.ask.watchdog:
                        core._until(held, call.sent + lease / 1000)
                then(None, now)

        # It is idempotent: the owner holds it once, or not at all.
        again = None if held.request.ask.watchdog and not held.kept else words
        call = Call(words, answered, again, until=now + max(self.timeout, held.lease / 1000))
        held.renewing = lease
        if held.kept and held.deadline is not None:  # from when the server has it nobody knows before the reply
            held.deadline = min(held.deadline, now + lease / 1000)
            self._look_at(held, now + lease / 3000)
        self.send(call, now)

    def _regain(self, held: Held, now: float) -> None:
        """On a new channel: asks whether the hold is still there, and subscribes to its loss. Its
        end stays where it is; that of one with watchdog is the server's, from now on if it has the module."""
        if held.kept and self.backend != "module":
            self._renew_kept(held, now)
            return
        self._table.pop(str(held.tag), None)
        held.tag = next(self._tags)
        self._table[str(held.tag)] = held
        self._bind(held, now, regains=True)

    def _bind(self, held: Held, now: float, regains: bool) -> None:
        """The server notifies us of its loss from now on, and that it is wanted, if the program asks for that."""
        lease = held.renewing or held.lease
        if held.deadline is not None and not held.renewing and not held.kept:
            lease = ms_up(held.deadline - now)
        alone = len(held.request.ask.keys) == 1
        watched = held.request.ask.watchdog and alone  # of several nobody but we
        asks = held.hint is not None and alone and self.hints and self.backend == "module"
        unsure = ("CLUSTERDOWN",) if regains else ELSEWHERE[1:]  # says nothing of the hold

        def answered(reply: Any, now: float) -> None:
            if isinstance(reply, Failure):
                if asks and no_hints(reply):
                    self.hints = False
                    if regains and held in self.holds:
                        self._bind(held, now, regains)
                elif reply.code not in unsure and (why := self._gone(reply, held)):
                    self._lost(held, why, now)
                elif asks:
                    self.timers.at(now + HINT, partial(self._ask, held, self.channel))
            elif reply is not BROKEN and held.kept and not (held.reason or held.over):
                held.outlived = True  # the module does not know its token
                self._keep_until(held, call.sent + lease / 1000, now)
                if watched and self.backend == "module":
                    self._let_go(held)

        words = (*held.request.ask.renew(held.request.owner, lease), "NOTIFY", self.channel, str(held.tag))
        more = (*(("WATCHDOG",) if watched else ()), *(("WANTED",) if asks else ()))
        call = Call((*words, *more), answered)
        self.send(call, now)

    def want(self, held: Held, now: float) -> None:
        """The program wants to know from now on whether somebody waits for it."""
        if held.hint is None:
            held.hint = Hint()
            self._ask(held, self.channel, now)

    def _ask(self, held: Held, channel: str, now: float) -> None:
        """On any later channel it was asked as the hold was regained."""
        can = self.ready and self.hints and self.backend == "module" and len(held.request.ask.keys) == 1
        if can and channel == self.channel and held in self.holds:
            self._bind(held, now, regains=False)

    def _wanted(self, held: Held, now: float) -> None:
        held.hint = held.hint or Hint()
        held.hint.said = now
        self.calls += held.rings()

    def _gone(self, reply: Failure, held: Held) -> str | None:
        """Why there is no such hold; None: that is not what it says."""
        if self.place and reply.code in ELSEWHERE:
            return "moved"
        gone = "deleted" if held.kept else "expired"
        return {"NOTHELD": gone, "WRONGTYPE": "overwritten"}.get(reply.code)

    def _until(self, held: Held, deadline: float) -> None:
        self.timers.cancel(held.timer)
        held.deadline = deadline
        held.timer = self.timers.at(deadline, partial(self._past, held))

    def _past(self, held: Held, now: float) -> None:
        self._end_hold(held, "lease", now)

    def _max(self, held: Held, now: float) -> None:
        self._end_hold(held, "max", now)

    def _end_hold(self, held: Held, reason: str, now: float) -> None:
        """Lost by our own clock: so that the server agrees, it is released."""
        self.send(self._ending(held.request, self._release_words(held, held.request.ask), now), now)
        self._lost(held, reason, now)

    def _lost(self, held: Held, reason: str, now: float) -> None:
        if held.reason:
            return
        held.lose(reason)
        if held.over:
            return  # its release is on the way, and will see it
        self._forget(held)
        request = held.request
        if reason == "demoted":  # the master that comes may have it still
            self.add_pending(self._freed(held.request, now), now)
        elif held.kept and reason in ("deleted", "overwritten") and len(request.ask.keys) > 1:
            for key in request.ask.keys:  # the loss of one is the loss of all
                words = request.ask._replace(keys=(key,)).release_all(request.owner)
                self.send(self._ending(request, words, now), now)
        elif reason == "moved":  # and so may the node that has the slot now
            self._move(self._freed(held.request, now))
        if not request.finished:  # the program does not have it yet
            gone = ConnectionError("the connection broke before the hold was sure")
            self._end(request, gone if reason == "connection" else Lost(reason, request.ask.name))
        for listener in held.listeners or ():
            self.calls.append(partial(listener, reason))
        held.listeners = None

    def _forget(self, held: Held, releasing: bool = False, moving: bool = False) -> None:
        if held not in self.holds:
            return
        del self.holds[held]
        if not moving:
            self.calls += held.rings()
        for key in held.request.ask.keys:
            if self.holders.get(key) is held:
                del self.holders[key]
        if not releasing:
            self._table.pop(str(held.tag), None)
            self.beat.remove(held.request.ask.counted(held.lease))
        self.timers.cancel(held.timer)
        self.timers.cancel(held.pace)
        if held.request.job and not moving:
            held.request.job.give(held.request)

    def _release_words(self, held: Held, ask: Ask) -> tuple[Word, ...]:
        """By its token; but another run of the server need not know that. (The library asks for none.)"""
        owner, strange = held.request.owner, held.outlived and self.backend in (None, "module")
        return ask.release_all(owner) if strange else ask.release(owner, held.token)

    def _freed(self, request: Request, now: float) -> Call:
        call = self._ending(request, request.ask.release_all(request.owner), now)
        call.parted(now)
        return call

    def _closing(self, held: Held, reason: str) -> None:
        held.lose(reason)
        for listener in held.listeners or ():
            self.calls.append(partial(listener, reason))
        held.listeners = None

    def _finish(self, pending: Pending, error: Exception | None) -> None:
        if not pending.finished:
            pending.finished, pending.error = True, error
            self.timers.cancel(pending.timer)
            self.calls.append(pending.done)

    def _end(self, request: Request, error: Exception | None, notify: bool = True) -> None: ...

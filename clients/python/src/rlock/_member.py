"""A session with one server of several, and what one owner is at that server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Optional

from ._ask import Ask
from ._backend import Backend
from ._core import Core
from ._protocol import BROKEN
from ._resp import Failure
from ._states import Call, Held, JobState, Pending, Request
from .errors import ConnectionError, NotAcquired, Refused

Fenced = Callable[[Optional[int], float], object]


class Member(JobState):
    """One owner at one server. Once a RELEASE of it was sent there it is out: whatever else
    it said could come before that, and be undone without its knowing."""

    __slots__ = ("asked", "out", "over", "request", "session", "valid")

    def __init__(self, session: Any, owner: str) -> None:
        super().__init__(owner)
        self.session = session
        self.request: Request | None = None
        self.valid = 0.0  # until when it counts
        self.asked = False
        self.over = False  # the majority goes on without it
        self.out = False  # it was sent a RELEASE

    @property
    def held(self) -> Held | None:
        held = self.request and self.request.held
        return held if held and not held.reason and not held.over else None

    @property
    def asking(self) -> bool:
        return bool(self.request and not self.request.finished)


class MemberCore(Core):
    """Where there are other servers nobody waits for one that is away, and a hold that nobody
    answers for ends without a RELEASE, after which it could not be acquired again."""

    waits_for_start = False

    def __init__(self, timeout: float, need: Backend | None = None) -> None:
        super().__init__(timeout, None, need)
        self._probing = False  # somebody wanted a connection, and did not wait for it

    @property
    def busy(self) -> bool:
        return self._probing or super().busy

    def take(self, member: Member, ask: Ask, done: Callable[[], object], now: float) -> Request:
        error: Exception | None = None
        if member.out:
            error = NotAcquired(ask.keys)
        elif self.failing and not self.connected:
            self._probing, error = True, self._away()
        else:
            member.request = request = Request(ask, member)
            request.done = done
            if self.closed:
                error = ConnectionError("the locks are closed")
            else:
                request.begin(now, self.timeout)
                self.adopt(request, now)
        if error:
            member.request = Request(ask, member)
            member.request.finished, member.request.error = True, error
            self.calls.append(done)
        assert member.request
        return member.request

    def fence(self, member: Member, token: int, now: float, then: Fenced, lost: Callable[[str], object]) -> None:
        """Renews it, with the server's counter set to the token at least. `then` gets the
        counter, and from when the lease counts; None: there is no such hold."""
        held = member.held
        if member.out or not held:
            self.calls.append(partial(then, None, 0.0))
            return
        if held.listeners is None:
            held.listeners = [lost]
        words = (*held.request.ask.renew(member.owner, held.lease), "FENCE", token)

        def answered(reply: Any, now: float) -> None:
            if member.held is not held or reply is BROKEN:
                return  # its loss is notified by itself
            if isinstance(reply, int):
                self._until(held, call.sent + held.lease / 1000)
                self.calls.append(partial(then, reply, call.sent))
            elif isinstance(reply, Failure):
                if why := self._gone(reply, held):
                    self._lost(held, why, now)
                else:
                    assert member.request
                    member.request.error = Refused(*reply)
                    self.calls.append(partial(then, None, 0.0))

        call = Call(words, answered, words, now + held.lease / 1000)
        self.send(call, now)

    def retire(self, member: Member, now: float, then: Callable[[Exception | None], object]) -> None:
        """It is over here: what the owner has, or may get yet, is released. `then`: that is
        answered, or nobody answers."""
        request, held = member.request, member.held
        if request and not request.finished:
            self._end(request, None, notify=False)
            if not held:
                self._call_off(request, now)
        if held:
            held.listeners, held.more = None, None
            pending = Pending()
            pending.done = lambda: then(pending.error)
            self.release(held, now, pending)
            return
        if request and member.asked and not member.out:
            self.send(self._freed(request, now), now)
        self.calls.append(partial(then, None))

    def _send_request(self, request: Request, now: float) -> None:
        assert isinstance(request.job, Member)
        request.job.asked = True
        super()._send_request(request, now)

    # Whatever sends a RELEASE says so.

    def release(self, held: Held, now: float, pending: Pending | None = None) -> Pending:
        self._out(held.request)
        return super().release(held, now, pending)

    def _call_off(self, request: Request, now: float) -> None:
        if request.sent:
            self._out(request)
        super()._call_off(request, now)

    def _freed(self, request: Request, now: float) -> Call:
        self._out(request)
        return super()._freed(request, now)

    @staticmethod
    def _out(request: Request) -> None:
        assert isinstance(request.job, Member)
        request.job.out = True

    def _regain(self, held: Held, now: float) -> None:
        """It is renewed soon, and to no other lease than the whole one."""

    def _past(self, held: Held, now: float) -> None:
        self._lost(held, "lease", now)

    def _open(self, now: float) -> None:
        self._probing = False
        super()._open(now)

    def _broken(self, now: float) -> None:
        self._probing = False
        super()._broken(now)
        if self.failing:
            for request in list(self.requests):
                self._end(request, self._away())
                self._call_off(request, now)

    def _away(self) -> ConnectionError:
        return ConnectionError(f"no connection to the server: {self.trouble}")

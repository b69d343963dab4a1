"""Whether replicas have a hold, asked over a second, plain connection to the same server.

WAIT goes by the last write of its own connection, and a grant that was pushed is none of
it. So a renewal of every hold that waits for that, which changes nothing, and then WAIT, again and
again and none of them long: who has less time is not held up by who has more, nor is who comes later.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ._backend import Words, is_gone, plain_failure
from ._clock import now as clock
from ._protocol import SETNAME
from ._resp import Failure, Word
from ._states import Request
from .errors import Lost, Refused

SLICE = 0.1  # s: no WAIT holds up the connection for longer
WHO: tuple[Word, ...] = ("INFO", "server")


def run_id(reply: Any) -> str:
    """Which run of which server it is, from the reply to WHO."""
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else ""
    return next((line[7:].strip() for line in text.splitlines() if line.startswith("run_id:")), "")


class Batch:
    """Those that wait at a moment, and until when. `renewed`: over which connection each was."""

    def __init__(self, waiting: dict[Request, float], renewed: dict[Request, Any], core: Any, now: float) -> None:
        self.waiting, self.renewed = waiting, renewed
        self.run: str = core.run
        self.said: Callable[[Words], Words] = core.said
        self.acks = min(request.ask.acks for request in waiting)
        left = min(SLICE, min(waiting.values()) - now)
        self.ms = max(1, math.ceil(left * 1000))
        self.fresh: list[Request] = []
        self.lacking: list[Request] = []  # what renews them was not there

    def questions(self, connection: Any) -> list[tuple[Word, ...]]:
        """Each is renewed once: another renewal would have to reach the replicas too."""
        self.fresh = [request for request in self.waiting if self.renewed.get(request) is not connection]
        asked = [self.said(request.ask.renew(request.owner, request.ask.lease)) for request in self.fresh]
        return [SETNAME, WHO, *asked, ("WAIT", self.acks, self.ms)]

    def other_run(self, replies: list[Any]) -> bool:
        return self.run != run_id(replies[1])

    def over(self, replies: list[Any] | None, now: float) -> dict[Request, Exception | None]:
        """Those for whom it is found out; without replies nothing is known, which is not enough."""
        if replies is None or self.other_run(replies):
            unknown = Refused("NOREPLICAS", "nobody could be asked what the replicas have")
            return dict.fromkeys(self.waiting, unknown)
        have = replies[-1] if isinstance(replies[-1], int) else 0
        over: dict[Request, Exception | None] = {}
        for request, until in self.waiting.items():
            if have >= request.ask.acks:
                over[request] = None
            elif now >= until:
                ask = request.ask
                why = f"{have} of {ask.acks} replicas have it after {ask.acks_ms} ms"
                over[request] = Refused("NOREPLICAS", why)
        for request, reply in zip(self.fresh, replies[2:]):
            if isinstance(reply, Failure) and is_gone(reply):
                over.pop(request, None)  # it was not renewed: once more
                self.lacking.append(request)
            elif isinstance(reply, Failure):
                over[request] = Lost("expired", request.ask.name) if reply.code == "NOTHELD" else Refused(*plain_failure(reply))
        return over


class Acker:
    """Asks for those of a session, over the session's second connection."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._asking = False
        self._waiting: dict[Request, float] = {}
        self._renewed: dict[Request, Any] = {}
        self.connection: Any = None

    def wanted(self) -> None:
        core, at = self._session.core, clock()
        if self._asking or not core.run:
            return
        for request in core.take_unsure():
            self._waiting[request] = at + request.ask.acks_ms / 1000
        self._waiting = {request: until for request, until in self._waiting.items() if not request.finished}
        self._renewed = {request: self._renewed[request] for request in self._waiting if request in self._renewed}
        if self._waiting:
            self._asking = True
            batch = Batch(self._waiting, self._renewed, core, at)
            self._session.loop.aside(self._session.asks(batch), partial(self._asked, batch))

    def _asked(self, batch: Batch, replies: list[Any] | None, error: BaseException | None, now: float) -> None:
        self._asking = False
        over = batch.over(replies, now)
        for request in batch.fresh:
            if request not in batch.lacking:
                self._renewed[request] = self.connection
        if batch.lacking:
            self._session.core.find_again(now)
        for request, problem in over.items():
            self._session.core.acked(request, problem, now)
            self._waiting.pop(request, None)
        if self._session.core.closed:
            self.close()
        self.wanted()

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection:
            self._session.shut(connection)

"""Whether replicas have a hold, asked over a second, plain connection to the same server.

WAIT goes by the last write of its own connection, and a grant that was pushed is none of
it. So a renewal of every hold that waits for that, which changes nothing, and one WAIT.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ._line import SETNAME
from ._resp import Failure, Word
from ._states import Request
from .errors import Lost, Refused

WHO: tuple[Word, ...] = ("INFO", "server")


def run_id(reply: Any) -> str:
    """Which run of which server it is, from the reply to WHO."""
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else ""
    return next((line[7:].strip() for line in text.splitlines() if line.startswith("run_id:")), "")


class Batch:
    """Those that want the same: so many replicas, within so long."""

    def __init__(self, requests: list[Request], run: str) -> None:
        self.requests = requests
        self.run = run
        self.acks, self.ms = requests[0].ask.acks, requests[0].ask.acks_ms

    def questions(self) -> list[tuple[Word, ...]]:
        asked = [request.ask.renew(request.owner, request.ask.lease) for request in self.requests]
        return [SETNAME, WHO, *asked, ("WAIT", self.acks, self.ms)]

    def other_run(self, replies: list[Any]) -> bool:
        return run_id(replies[1]) != self.run

    def errors(self, replies: list[Any] | None) -> list[Exception | None]:
        """Of each request; without replies nothing is known, which is not enough."""
        if replies is None or self.other_run(replies):
            return [Refused("NOREPLICAS", "nobody could be asked what the replicas have")] * len(self.requests)
        have = replies[-1] if isinstance(replies[-1], int) else 0
        return [self._error(request, reply, have) for request, reply in zip(self.requests, replies[2:])]

    def _error(self, request: Request, reply: Any, have: int) -> Exception | None:
        if isinstance(reply, Failure):
            return Lost("expired", request.ask.name) if reply.code == "NOTHELD" else Refused(*reply)
        if have < self.acks:
            return Refused("NOREPLICAS", f"{have} of {self.acks} replicas have it after {self.ms} ms")
        return None


class Acker:
    """Asks for those of a session, one batch after the other, over the session's second connection."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._asking = False
        self.connection: Any = None

    def wanted(self) -> None:
        batch = None if self._asking else self._session.core.batch()
        if batch:
            self._asking = True
            self._session.loop.aside(self._session.asks(batch), partial(self._asked, batch))

    def _asked(self, batch: Batch, replies: list[Any] | None, error: BaseException | None, now: float) -> None:
        self._asking = False
        for request, problem in zip(batch.requests, batch.errors(replies)):
            self._session.core.acked(request, problem, now)
        if self._session.core.closed:
            self.close()
        self.wanted()

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection:
            self._session.shut(connection)

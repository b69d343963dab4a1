"""Asks for acks: a task that lives while there is somebody to ask for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .._acks import Batch
from .._core import Core
from .._resp import Parser, encode

if TYPE_CHECKING:
    from ._session import Session


class Acker:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._task: asyncio.Task[None] | None = None
        self.connection: Any = None

    def wanted(self) -> None:
        if self._task is None or self._task.done():
            self._task = self._session.task(self._run())

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection and connection._writer:
            connection._writer.transport.abort()
            connection._reader = connection._writer = None

    async def _run(self) -> None:
        while batch := self._session.act(lambda core, now: core.batch()):
            errors = batch.errors(await self._ask(batch))

            def tell(core: Core, now: float, batch: Batch = batch) -> None:
                for request, error in zip(batch.requests, errors):
                    core.acked(request, error, now)

            self._session.act(tell)

    async def _ask(self, batch: Batch) -> list[Any] | None:
        for _ in range(2):  # the connection may be an old one
            try:
                timeout = batch.ms / 1000 + self._session.core.timeout
                replies = await asyncio.wait_for(self._exchange(batch), timeout)
                if not batch.other_run(replies):
                    return replies
            except Exception:
                pass
            self.close()
        return None

    async def _exchange(self, batch: Batch) -> list[Any]:
        if self.connection is None:
            self.connection = self._session.make()
            await self.connection.connect()
        questions, parser = batch.questions(), Parser()
        replies: list[Any] = []
        self.connection._writer.write(b"".join(map(encode, questions)))
        while len(replies) < len(questions):
            data = await self.connection._reader.read(65536)
            if not data:
                raise OSError("the server closed the connection")
            replies += parser.feed(data)
        return replies

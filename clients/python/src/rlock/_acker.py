"""Asks for acks: a thread that lives while there is somebody to ask for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ._acks import Batch
from ._core import Core
from ._resp import Parser, encode

if TYPE_CHECKING:
    from ._session import Session


class Acker:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._guard = threading.Lock()
        self._running = False
        self.connection: Any = None

    def wanted(self) -> None:
        with self._guard:
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="rlock-acks", daemon=True).start()

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection:
            connection.disconnect()

    def _run(self) -> None:
        while True:
            with self._guard:
                batch = self._session.act(lambda core, now: core.batch())
                if batch is None:
                    self._running = False
                    return
            errors = batch.errors(self._ask(batch))

            def tell(core: Core, now: float) -> None:
                for request, error in zip(batch.requests, errors):
                    core.acked(request, error, now)

            self._session.act(tell)

    def _ask(self, batch: Batch) -> list[Any] | None:
        for _ in range(2):  # the connection may be an old one
            try:
                replies = self._exchange(batch)
                if not batch.other_run(replies):
                    return replies
            except Exception:
                pass
            self.close()
        return None

    def _exchange(self, batch: Batch) -> list[Any]:
        timeout = self._session.core.timeout
        if self.connection is None:
            self.connection = self._session.make()
            self.connection.connect()
        questions, parser = batch.questions(), Parser()
        replies: list[Any] = []
        sock = self.connection._sock
        sock.settimeout(batch.ms / 1000 + timeout)
        sock.sendall(b"".join(map(encode, questions)))
        while len(replies) < len(questions):
            data = sock.recv(65536)
            if not data:
                raise OSError("the server closed the connection")
            replies += parser.feed(data)
        return replies

"""From a key to the session of the server that has it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ._connect import maker
from ._core import Core
from ._session import Session
from ._slots import NODE_WAIT, PAUSE, key_in, node_of, tag_at
from ._states import Call, Request
from .errors import ConnectionError


def router(client: Any, timeout: float) -> Router:
    return ClusterRouter(client, timeout) if hasattr(client, "nodes_manager") else Router(client, timeout)


class Router:
    """One server, one session."""

    def __init__(self, client: Any, timeout: float, core: type[Core] = Core) -> None:
        self._core = core
        self._timeout = timeout
        self._guard = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._make = maker(client.connection_pool, timeout) if hasattr(client, "connection_pool") else None

    def session(self, key: bytes) -> Session:
        return self._at("", lambda: Session(self._make or list, self._core(self._timeout)))

    def sessions(self) -> list[Session]:
        return [session for session in list(self._sessions.values()) if not session.forked]

    def close(self, wait: float) -> None:
        for session in self.sessions():
            session.close(wait)

    def abandon(self) -> None:
        for session in self.sessions():
            session.abandon()

    def _at(self, name: str, begin: Callable[[], Session]) -> Session:
        session = self._sessions.get(name)
        if session is None or session.forked:
            if session:
                self._guard = threading.Lock()  # the parent may have forked with it held
            with self._guard:
                session = self._sessions.get(name)
                if session is None or session.forked:
                    session = self._sessions[name] = begin()
        return session


class ClusterRouter(Router):
    """A session for each node; a thread for as long as something has to go to another one."""

    def __init__(self, client: Any, timeout: float) -> None:
        super().__init__(None, timeout)
        self._client = client
        self._moving: threading.Thread | None = None

    def session(self, key: bytes) -> Session:
        end = time.monotonic() + NODE_WAIT
        while (node := node_of(self._client, key)) is None:
            if time.monotonic() > end:
                raise ConnectionError("no node of the cluster has the slot")
            time.sleep(PAUSE)
            self._read_slots()
        return self._at(node.name, lambda: self._begin(node))

    def _begin(self, node: Any) -> Session:
        pool = self._client.get_redis_connection(node).connection_pool
        core = Core(self._timeout, lambda: tag_at(self._client, node.name))
        core.on_moved = self._wanted
        return Session(maker(pool, self._timeout), core)

    def _wanted(self) -> None:
        with self._guard:
            if self._moving is None or not self._moving.is_alive():
                self._moving = threading.Thread(target=self._move, name="rlock-slots", daemon=True)
                self._moving.start()

    def _read_slots(self) -> bool:
        try:
            self._client.nodes_manager.initialize()
        except Exception:
            return False  # nobody answers now; it is tried again
        return True

    def _move(self) -> None:
        while True:
            time.sleep(PAUSE)
            if self._read_slots():
                for session in self.sessions():
                    for one in session.act(lambda core, now: core.take_moved()):
                        self._pass_on(session, one)
                    session.act(lambda core, now: core.subscribe_again(now))
            with self._guard:
                if not any(session.core.moved or session.core.homeless for session in self.sessions()):
                    self._moving = None
                    return

    def _pass_on(self, source: Session, one: Request | Call) -> None:
        key = key_in(one.words) if isinstance(one, Call) else one.ask.keys[0]
        try:
            target = self.session(key)
        except ConnectionError:
            target = source
        if isinstance(one, Call):
            target.act(lambda core, now: core.send(one, now))
        elif source is target:
            source.act(lambda core, now: core.resend(one, now))
        elif source.act(lambda core, now: core.hand_over(one)):
            target.act(lambda core, now: core.adopt(one, now))

"""From a key to the session of the server that has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .._connect import maker
from .._core import Core
from .._slots import NODE_WAIT, PAUSE, key_in, node_of, tag_at
from .._states import Call, Request
from ..errors import ConnectionError
from ._session import Session


def router(client: Any, timeout: float) -> Router:
    return ClusterRouter(client, timeout) if hasattr(client, "nodes_manager") else Router(client, timeout)


class Router:
    """One server, one session for each event loop."""

    def __init__(self, client: Any, timeout: float, core: type[Core] = Core) -> None:
        self._core = core
        self._timeout = timeout
        self._sessions: dict[str, Session] = {}
        self._make = maker(client.connection_pool, timeout) if hasattr(client, "connection_pool") else None

    async def session(self, key: bytes) -> Session:
        return self._at("", lambda: Session(self._make or list, self._core(self._timeout)))

    def sessions(self) -> list[Session]:
        return [session for session in self._sessions.values() if not session.forked]

    async def close(self, wait: float) -> None:
        await asyncio.gather(*(session.close(wait) for session in self.sessions()))

    def abandon(self) -> None:
        for session in self.sessions():
            session.close_soon()

    def _at(self, name: str, begin: Callable[[], Session]) -> Session:
        session = self._sessions.get(name)
        # A session belongs to its loop; with another loop another one begins.
        if session is None or session.forked or session.loop is not asyncio.get_running_loop():
            session = self._sessions[name] = begin()
        return session


class ClusterRouter(Router):
    """A session for each node; a task for as long as something has to go to another one."""

    def __init__(self, client: Any, timeout: float) -> None:
        super().__init__(None, timeout)
        self._client = client
        self._moving: asyncio.Task[None] | None = None

    async def session(self, key: bytes) -> Session:
        loop = asyncio.get_running_loop()
        end = loop.time() + NODE_WAIT
        while (node := node_of(self._client, key)) is None:
            if not await self._read_slots() and loop.time() > end:
                raise ConnectionError("no node of the cluster has the slot")
        return self._at(node.name, lambda: self._begin(node))

    def _begin(self, node: Any) -> Session:
        core = Core(self._timeout, lambda: tag_at(self._client, node.name))
        session = Session(maker(node, self._timeout), core)
        core.on_moved = lambda: self._wanted(session)
        return session

    def _wanted(self, session: Session) -> None:
        if self._moving is None or self._moving.done():
            self._moving = session.task(self._move())

    async def _read_slots(self) -> bool:
        try:
            if self._client.nodes_manager.slots_cache:
                await self._client.nodes_manager.initialize()
            else:
                await self._client.initialize()
        except Exception:
            await asyncio.sleep(PAUSE)
            return False  # nobody answers now; it is tried again
        return True

    async def _move(self) -> None:
        while any(session.core.moved or session.core.homeless for session in self.sessions()):
            await asyncio.sleep(PAUSE)
            if not await self._read_slots():
                continue
            for session in self.sessions():
                for one in session.act(lambda core, now: core.take_moved()):
                    await self._pass_on(session, one)
                session.act(lambda core, now: core.subscribe_again(now))

    async def _pass_on(self, source: Session, one: Request | Call) -> None:
        key = key_in(one.words) if isinstance(one, Call) else one.ask.keys[0]
        try:
            target = await self.session(key)
        except ConnectionError:
            target = source
        if isinstance(one, Call):
            target.act(lambda core, now: core.send(one, now))
        elif source is target:
            source.act(lambda core, now: core.resend(one, now))
        elif source.act(lambda core, now: core.hand_over(one)):
            target.act(lambda core, now: core.adopt(one, now))

"""From a key to the session of the server that has it. It runs in the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

from ._backend import Backend
from ._beat import PATIENCE
from ._connect import refusal
from ._core import Core
from ._slots import NODE_WAIT, key_in, node_of, tag_at
from ._states import Call, Held, Pending, Request
from .errors import ConnectionError, Error, Refused


class Router:
    """One server, one session."""

    def __init__(
        self,
        make: Callable[[], Any] | None,
        timeout: float,
        need: Backend | None,
        loop: Any,
        patience: int | None = PATIENCE,
    ) -> None:
        self._loop, self.timeout, self._need, self._patience = loop, timeout, need, patience
        self._closed = False
        if make:
            self._core = loop.session(make, Core(timeout, None, need, patience)).core

    def ask(self, request: Request, at: float) -> None:
        if request.finished:
            return  # given up before
        try:
            if self._closed:
                raise ConnectionError("the locks are closed")
            request.begin(at, self.timeout)
            self._place(request, at)
        except Error as error:
            request.end(error)

    def close(self, pending: Pending, at: float) -> None:
        self._closed = True
        self._loop.close(pending, at)

    def _place(self, request: Request, at: float) -> None:
        self._core.adopt(request, at)


One = Union[Request, Call, Held]


class ClusterRouter(Router):
    """A session for each node. What has to go to another one waits here for the slots to be read."""

    def __init__(
        self,
        client: Any,
        read: Callable[[], Any],
        timeout: float,
        need: Backend | None,
        loop: Any,
        patience: int | None = PATIENCE,
    ) -> None:
        super().__init__(None, timeout, need, loop, patience)
        self._client, self._read = client, read
        self._cores: dict[str, Core] = {}
        self._nowhere: list[tuple[Request | Call, float]] = []  # since when
        self._reading = False

    def close(self, pending: Pending, at: float) -> None:
        super().close(pending, at)
        nowhere, self._nowhere = self._nowhere, []
        for one, _ in nowhere:
            if isinstance(one, Request) and not one.finished:
                one.end(ConnectionError("the locks are closed"))

    def _place(self, one: Request | Call, at: float, since: float | None = None) -> None:
        node = node_of(self._client, _key_of(one))
        if node is None:
            self._nowhere.append((one, since or at))
            self._wanted()
        elif isinstance(one, Call):
            if one.until > at:  # else its job may have asked for the key again
                self._at(node).send(one, at)
        else:
            self._at(node).adopt(one, at)

    def _at(self, node: Any) -> Core:
        core = self._cores.get(node.name)
        if core is None:
            core = Core(self.timeout, lambda: tag_at(self._client, node.name), self._need, self._patience)
            core.on_moved = self._wanted
            self._cores[node.name] = core
            self._loop.session(self._loop.maker_at(self._client, node, self.timeout), core)
        return core

    def _wanted(self) -> None:
        if not self._reading and not self._closed:
            self._reading = True
            self._loop.aside(self._read, self._have_read)

    def _have_read(self, nothing: Any, error: BaseException | None, at: float) -> None:
        self._reading = False
        cores = list(self._cores.values())
        if error is None:  # else nobody answers now; it is tried again
            for core in cores:
                for one in core.take_moved():
                    self._pass_on(core, one, at)
                core.subscribe_again(at)
        nowhere, self._nowhere = self._nowhere, []
        why = error and (refusal(error) or (error.__cause__ and refusal(error.__cause__)))
        for one, since in nowhere:
            if isinstance(one, Request) and one.finished:
                continue
            if at < since + NODE_WAIT and not why:
                self._place(one, at, since)
            elif isinstance(one, Request):
                one.end(Refused(*why) if why else ConnectionError("no node of the cluster has the slot"))
        if self._nowhere or any(core.moved or core.homeless for core in cores):
            self._wanted()

    def _pass_on(self, source: Core, one: One, at: float) -> None:
        if isinstance(one, Call):
            self._place(one, at)
            return
        node = node_of(self._client, _key_of(one))
        if isinstance(one, Held):
            if node and self._at(node) is not source:
                source.hand_over_hold(one)
                self._at(node).adopt_hold(one, at)
        elif node is None or self._at(node) is source:
            source.resend(one, at)
        else:
            source.hand_over(one)
            self._at(node).adopt(one, at)


def _key_of(one: One) -> bytes:
    if isinstance(one, Call):
        return key_in(one.words)
    return (one.request if isinstance(one, Held) else one).ask.keys[0]

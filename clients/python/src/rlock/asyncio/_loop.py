"""The loop of the face for asyncio: steps are done in the event loop, and sessions are protocols.
A task of its own a session has only while it connects.

The program's callbacks are the event loop's next calls, never run in the middle of a step.
"""

from __future__ import annotations

import asyncio
import math
import os
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from .._acks import Batch
from .._clock import now
from .._connect import maker
from .._core import Core
from .._loop import BaseLoop, BaseSession, Step, Then
from .._resp import Parser, encode
from .._states import ENOUGH, Pending
from ._at_end import AtEnd


# What a signal handler raises may strike before the first line of a call of the event loop's, and then
# nobody would make up for it. So it is called once more: seconds after the first time.
TWICE = (0, 0.1)


def _notified(future: asyncio.Future[None]) -> object:
    if not future.done():
        future.set_result(None)
    return ENOUGH


class Replies(asyncio.Protocol):
    """What the server sends goes to the session at once: no task has to awake for it first."""

    def __init__(self, session: Session, connection: Any) -> None:
        self._session, self._connection = session, connection

    def data_received(self, data: bytes) -> None:
        if self._connection is self._session.connection:  # else given up meanwhile
            self._session.loop.post(lambda at: self._session.core.receive(data, at))

    def connection_lost(self, error: Exception | None) -> None:
        def step(at: float) -> None:
            if self._connection is self._session.connection:
                self._session.core.drop = str(error or "the server closed the connection")

        self._session.loop.post(step)


class Session(BaseSession):
    _at_end: AtEnd | None = None  # while there is a connection
    making: Any = None  # a connection that is being made, by the task
    _connects: asyncio.Task[Any] | None = None

    def connect(self) -> None:
        connection = self.make()

        async def work() -> None:
            await connection.connect()

        def then(nothing: None, error: BaseException | None, at: float) -> None:
            if self.making is connection:
                self.making = self._connects = None
                self.made(connection, error, at)
            else:
                self.shut(connection)

        self.making = connection
        self._connects = self.loop.aside(work, then)

    @property
    def leaving(self) -> bool:
        """A task that connects for nobody would outlive the `Locks`, and perhaps the event loop."""
        if self._connects and not self.core.busy:
            self._connects.cancel()
        return super().leaving or self._connects is not None

    def begin(self) -> None:
        if self._at_end:
            self._at_end.cancel()  # which an exception may have kept from it
        self._at_end = AtEnd(lambda: self.loop.closed(self.core.timeout))
        self._at_end.begin()
        self.connection._writer.transport.set_protocol(Replies(self, self.connection))

    def write(self) -> None:
        core = self.core
        if not self.connection or not core.out or core.drop:
            return
        transport = self.connection._writer.transport
        if transport.is_closing():  # and an exception may have struck where we should have been notified
            core.drop = "the connection is closed"
            return
        transport.write(bytes(core.out))
        core.out.clear()

    def shut(self, connection: Any) -> None:
        if connection._writer and not self.loop.loop.is_closed():
            connection._writer.transport.abort()
        connection._reader = connection._writer = None
        if self._at_end and connection is not self.acker.connection:
            self._at_end.cancel()

    def asks(self, batch: Batch) -> Callable[[], Any]:
        return partial(self._ask, batch)

    async def _ask(self, batch: Batch) -> list[Any] | None:
        for _ in range(2):  # the connection may be an old one
            try:
                replies: list[Any] = await asyncio.wait_for(self._exchange(batch), batch.ms / 1000 + self.core.timeout)
                if not batch.other_run(replies):
                    return replies
            except Exception:
                pass
            self.acker.close()
        return None

    async def _exchange(self, batch: Batch) -> list[Any]:
        acker = self.acker
        if acker.connection is None:
            acker.connection = self.make()
            await acker.connection.connect()
        questions, parser = batch.questions(acker.connection), Parser()
        replies: list[Any] = []
        acker.connection._writer.write(b"".join(map(encode, questions)))
        while len(replies) < len(questions):
            data = await acker.connection._reader.read(65536)
            if not data:
                raise OSError("the server closed the connection")
            replies += parser.feed(data)
        return replies

    def in_child(self) -> None:
        """The child's copy of the socket is closed; the loop it belonged to is not touched,
        for what the child does to it the parent would feel."""
        if self._at_end:
            self._at_end.cancel()
        for connection in (self.connection, self.acker.connection):
            if connection and connection._writer:
                raw = connection._writer.get_extra_info("socket")
                nowhere = os.open(os.devnull, os.O_RDWR)
                os.dup2(nowhere, raw.fileno(), inheritable=False)
                os.close(nowhere)


class Loop(BaseLoop):
    def __init__(self) -> None:
        super().__init__()
        self.router: Any = None
        self.loop = asyncio.get_running_loop()
        self._busy = False
        self._steps: deque[Step] = deque()
        self._winds: list[asyncio.TimerHandle] = []
        self._due = math.inf
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waits: dict[asyncio.Future[None], Pending] = {}
        _loops.add(self)

    # From wherever.

    def post(self, step: Step) -> None:
        """Does it at once in the event loop; else soon: in another thread, and in a finaliser
        that the garbage collector runs in the middle of a step."""
        if self.forked or self.loop.is_closed():
            return  # nobody would do it, or let it go
        self._steps.append(step)
        if self._busy or asyncio._get_running_loop() is not self.loop:
            for _ in TWICE:
                self.loop.call_soon_threadsafe(self._do)
        else:
            self._do()

    async def wait(self, pending: Pending, future: asyncio.Future[None]) -> None:
        """Until it is over, which `future` of its waker shows."""
        if not pending.finished:
            self._waits[future] = pending
            try:
                await future
            finally:
                self._waits.pop(future, None)

    def waker(self) -> tuple[asyncio.Future[None], Callable[[], object]]:
        """What a task waits for, which may be one of another event loop; and what ends that."""
        here = asyncio.get_running_loop()
        future: asyncio.Future[None] = here.create_future()

        def done_there() -> None:
            if not here.is_closed():
                here.call_soon_threadsafe(_notified, future)

        return future, partial(_notified, future) if here is self.loop else done_there

    # In the event loop.

    @staticmethod
    def maker_at(client: Any, node: Any, timeout: float) -> Callable[[], Any]:
        return maker(node, timeout)

    def session(self, make: Callable[[], Any], core: Core) -> Session:
        session = Session(self, make, core)
        self.sessions.append(session)
        return session

    def aside(self, work: Callable[[], Any], then: Then) -> asyncio.Task[Any]:
        """`work` makes a coroutine; `then` is a step."""

        def step(at: float) -> None:
            if task not in self._tasks:
                return
            self._tasks.discard(task)
            result, error = None, None
            try:
                result = task.result()
            except BaseException as caught:  # perhaps the program has cancelled all tasks, and it never began
                error = caught
            then(result, error, at)

        task = self.loop.create_task(work(), name="rlock")
        self._tasks.add(task)
        for _ in TWICE:
            task.add_done_callback(lambda task: self.post(step))
        return task

    def later(self, call: Callable[[], object]) -> None:
        """What is the program's: by the event loop's next call."""
        self.loop.call_soon(call)

    def closing(self) -> asyncio.Future[None]:
        """Closes the sessions; what it gives is done when the servers have answered."""
        pending = Pending()
        future, pending.done = self.waker()
        self.post(partial(self.router.close, pending))
        return future

    async def closed(self, timeout: float) -> None:
        """Of a `Locks` that nobody closed, when the event loop ends."""
        future = self.closing()
        if not future.done():
            await asyncio.wait([future], timeout=timeout)

    def _do(self) -> None:
        if self.forked:
            return
        self._busy = True
        try:
            while self._steps:
                self._steps.popleft()(now())
            self.settle()
            self._wind()
        except BaseException as error:  # what a signal handler raises: nothing may stay half done
            self.fault(error)
            self.loop.call_soon(self._do)
            raise
        finally:
            self._busy = False

    def fault(self, error: BaseException) -> None:
        for session in self.sessions:
            making, session.making = session.making, None  # perhaps no task does it
            if making:
                session.shut(making)
            session.core.connecting = False
        super().fault(error)
        for future, pending in list(self._waits.items()):
            if pending.finished:  # and nobody may be left who says so
                future.get_loop().call_soon_threadsafe(_notified, future)

    def _wind(self) -> None:
        due = self.next_time()
        if due == math.inf or (self._winds and self._due <= due):
            return  # one that comes too early does no harm, and costs less than a new one
        self._unwind()
        self._due = due
        wait = min(max(0.0, due - now()) + 0.0005, 3600.0)
        self._winds = [self.loop.call_later(wait + more, self._tick) for more in TWICE]

    def _unwind(self, at: float = 0) -> None:
        winds, self._winds = self._winds, []
        for wind in winds:
            wind.cancel()

    def _tick(self) -> None:
        self._steps.append(self._unwind)
        self._do()

    @property
    def gone(self) -> bool:
        return self.forked or self.loop.is_closed()

    def in_child(self) -> None:
        self.forked = True
        for session in self.sessions:
            session.in_child()


_loops: weakref.WeakSet[Loop] = weakref.WeakSet()


def _in_child() -> None:
    for loop in list(_loops):
        loop.in_child()
        _loops.discard(loop)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

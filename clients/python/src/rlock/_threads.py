"""The loop of the face for threads: one daemon thread, which reads all connections of a `Locks`.

It alone owns the sessions' state, waits for nobody and runs nothing of the program; what may
block or is the program's runs in other threads (`aside`, `callbacks`). What the program calls
is put in a deque, which is safe in a finaliser, in a signal handler, and against an exception
at any line: `append` and `popleft` are one step each, and no lock is held anywhere.
"""

from __future__ import annotations

import _thread
import logging
import os
import selectors
import socket
import ssl
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ._acks import Batch
from ._backend import Backend
from ._callbacks import Callbacks
from ._clock import now
from ._connect import maker
from ._core import Core
from ._loop import BaseLoop, BaseSession, Step, Then
from ._resp import Parser, encode
from ._states import Pending
from ._wait import Alarm, wait

log = logging.getLogger("rlock")

LATER = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

READS = 16  # of 64 KB at most; then it is the turn of what is to be written, of times, of other connections

# `here`: this thread is one of the client's own. The garbage collector may run the program's
# finalisers in it: what they call is done, and not waited for.
own = threading.local()


class Bell(socket.socket):
    """Wakes the thread. Closed by whoever has it last: a number that is taken anew is not rung."""

    def __del__(self) -> None:
        self.close()

    def ring(self) -> None:
        try:
            self.send(b"\0")
        except OSError:
            pass  # it is full, and so the thread awakes; or nobody is there any more


class Session(BaseSession):
    """Over a socket that never blocks."""

    making: Any = None  # a connection that is being made

    def connect(self) -> None:
        forks = self.loop.forks

        def work() -> None:
            self.making = self.make()
            self.making.connect()
            self.making._sock.setblocking(False)

        def then(nothing: None, error: BaseException | None, at: float) -> None:
            connection, self.making = self.making, None
            if forks != self.loop.forks and error is None:
                # A child may have a copy of the socket that it does not know of.
                error = OSError("the process forked while it connected")
            if error is None and not self.loop.opened():
                error = OSError("too many open files")
            self.made(connection, error, at)

        self.loop.aside(work, then)

    def begin(self) -> None:
        self.loop.selector.register(self.connection._sock, selectors.EVENT_READ, self)

    def write(self) -> None:
        core = self.core
        if not self.connection or core.drop:
            return
        before = len(core.out)
        try:
            while core.out:
                # A TLS socket that was not ready wants the same bytes again, and has them.
                del core.out[: self.connection._sock.send(bytes(core.out[:65536]))]
        except LATER:
            pass
        except OSError as error:
            core.drop = str(error) or type(error).__name__
        if before:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if core.out else 0)
            self.loop.listen(self.connection._sock, events, self)

    def read(self) -> bool:
        """Whether there is more, perhaps: of TLS some of it lies where a selector does not see it."""
        core = self.core
        try:
            for _ in range(READS):
                if not self.connection or core.drop:
                    return False
                data = self.connection._sock.recv(65536)
                if not data:
                    core.drop = "the server closed the connection"
                # A callback that was removed before its hold was lost is not called.
                self.loop.steps()
                core.receive(data, now())
                while core.calls:  # what follows from it, before more of it
                    core.calls.popleft()()
            return True
        except LATER:
            pass
        except OSError as error:
            core.drop = str(error) or type(error).__name__
        return False

    def shut(self, connection: Any) -> None:
        if connection._sock is not None and self.loop.selector:
            try:
                self.loop.selector.unregister(connection._sock)
            except (KeyError, ValueError):
                pass
        connection.disconnect()

    def asks(self, batch: Batch) -> Callable[[], Any]:
        return partial(self._ask, batch)

    def _ask(self, batch: Batch) -> list[Any] | None:
        """In a thread of its own."""
        for _ in range(2):  # the connection may be an old one
            try:
                connection = self.acker.connection = self.acker.connection or self.make()
                replies = self._exchange(connection, batch)
                if not batch.other_run(replies):
                    return replies
            except Exception:
                pass
            connection, self.acker.connection = self.acker.connection, None
            if connection:
                connection.disconnect()
        return None

    def _exchange(self, connection: Any, batch: Batch) -> list[Any]:
        connection.connect()
        questions, parser = batch.questions(connection), Parser()
        replies: list[Any] = []
        sock = connection._sock
        sock.settimeout(batch.ms / 1000 + self.core.timeout)
        sock.sendall(b"".join(map(encode, questions)))
        while len(replies) < len(questions):
            data = sock.recv(65536)
            if not data:
                raise OSError("the server closed the connection")
            replies += parser.feed(data)
        return replies


class Loop(BaseLoop):
    def __init__(self) -> None:
        super().__init__()
        self.forks = 0
        self.router: Any = None
        self.callbacks = Callbacks()
        self.selector: Any = None
        self._steps: deque[Step] = deque()
        self._turn = deque([None])  # whoever has popped it is the thread
        self._runs = False
        self._asleep = False
        self._rings: Bell | None = None
        self._rung: Any = None
        self._aside = 0
        self._unread: set[Session] = set()  # where there is more, perhaps
        _loops.add(self)

    # From wherever.

    def post(self, step: Step) -> None:
        """Has the thread do it, soon, after what was posted before."""
        self._steps.append(step)
        if not self._runs:
            _thread.start_new_thread(self._run, ())  # one of several has its turn
        elif self._asleep and (bell := self._rings):
            bell.ring()

    @staticmethod
    def maker_at(client: Any, node: Any, timeout: float) -> Callable[[], Any]:
        # redis-py has a lock there: in the thread that connects.
        return lambda: maker(client.get_redis_connection(node).connection_pool, timeout)()

    def session(self, make: Callable[[], Any], core: Core) -> Session:
        session = Session(self, make, core)
        self.sessions.append(session)
        return session

    # In the thread.

    def aside(self, work: Callable[[], Any], then: Then) -> None:
        """`work` may block, so another thread does it; `then` is a step."""

        def done(result: Any, error: BaseException | None, at: float) -> None:
            self._aside -= 1
            then(result, error, at)

        def run() -> None:
            own.here = True
            result, error = None, None
            try:
                result = work()
            except BaseException as caught:
                error = caught
            self.post(partial(done, result, error))

        self._aside += 1
        try:
            _thread.start_new_thread(run, ())
        except RuntimeError as error:  # there are too many
            self._steps.append(partial(done, None, error))

    def later(self, call: Callable[[], object]) -> None:
        """What is the program's: in a thread for that."""
        self.callbacks.put(call)

    def listen(self, sock: Any, events: int, session: Session) -> None:
        if self.selector.get_key(sock).events != events:
            self.selector.modify(sock, events, session)

    def _run(self) -> None:
        own.here = True
        while self._steps:
            try:
                self._turn.pop()
            except IndexError:
                return  # another one is the thread
            self._runs = True
            while self._steps or self._wanted():
                self._round()
            self._shut()
            self._runs = False
            self._turn.append(None)
            # Who posted before that saw it run, and relies on it.

    def _wanted(self) -> bool:
        return bool(
            self._aside
            or self._closing
            or self.callbacks.due() < float("inf")
            or self.timers.next() < float("inf")
            or any(session.alive for session in self.sessions)
        )

    def opened(self) -> bool:
        """False: there are too many open files. Times go on all the same."""
        if self.selector:
            return True
        try:
            selector = selectors.DefaultSelector()
            self._rung, rings = socket.socketpair()
        except OSError:
            return False
        self._rung.setblocking(False)
        rings.setblocking(False)
        selector.register(self._rung, selectors.EVENT_READ)
        self.selector, self._rings = selector, Bell(fileno=rings.detach())
        return True

    def _shut(self) -> None:
        if self.selector:
            self._rings = None
            self._rung.close()
            self.selector.close()
            self.selector = None

    def _round(self) -> None:
        try:
            self.steps()
            self.settle()
            self.callbacks.look(now())
            self._sleep()
        except Exception as error:  # a fault of ours
            self.later(partial(log.error, "rlock: %r", error, exc_info=error))
            self.fault(error)

    def steps(self) -> None:
        """Does what was posted until now."""
        for _ in range(len(self._steps)):
            self._steps.popleft()(now())

    def _sleep(self) -> None:
        if not self.opened():
            time.sleep(0.05)
            return
        self._asleep = True
        due = min(self.next_time(), self.callbacks.due())
        if self._steps or self._unread or not self._wanted():
            due = 0.0
        ready = self.selector.select(min(max(0.0, due - now()) + 0.0005 if due else 0.0, 3600.0))
        self._asleep = False
        unread, self._unread = self._unread, set()
        for key, _ in ready:
            if key.data:
                unread.add(key.data)
            else:
                self._rung.recv(4096)
        for session in unread:
            if session.read():
                self._unread.add(session)

    @property
    def gone(self) -> bool:
        return self.forked

    # Fork.

    def in_child(self) -> None:
        """Closes the child's copies, without a shutdown, which the parent would feel."""
        self.forked = True
        for session in self.sessions:
            for connection in (session.connection, session.acker.connection, session.making):
                if connection is not None and connection._sock is not None:
                    connection._sock.close()
        if self.selector:
            self.selector.close()


class Loops:
    """The loop of this process: a child of a fork has one of its own."""

    def __init__(self, begin: Callable[[Loop], Any]) -> None:
        self._begin = begin
        self._all: dict[int, Loop] = {}

    def here(self) -> Loop:
        loop = self._all.get(os.getpid())
        if loop is None or loop.forked:
            fresh = Loop()
            fresh.router = self._begin(fresh)
            if loop:
                self._all.pop(os.getpid(), None)
            loop = self._all.setdefault(os.getpid(), fresh)
        return loop

    def close(self, wait_for: float) -> None:
        loop = self._all.get(os.getpid())
        if loop is None or loop.forked:
            return
        alarm, pending = Alarm(), Pending()
        pending.done = alarm.ring
        step = partial(loop.router.close, pending)
        try:
            loop.post(step)
            if not getattr(own, "here", False):
                wait(pending, alarm, end=time.monotonic() + wait_for)
        except BaseException:
            loop.post(step)
            raise

    @property
    def backend(self) -> Backend | None:
        loop = self._all.get(os.getpid())
        return loop.backend if loop and not loop.forked else None

    def abandon(self) -> None:
        """Like close, from the garbage collector: nobody waits."""
        loop = self._all.get(os.getpid())
        if loop and not loop.forked:
            loop.post(partial(loop.router.close, Pending()))


_loops: weakref.WeakSet[Loop] = weakref.WeakSet()


def _in_parent() -> None:
    for loop in list(_loops):
        loop.forks += 1


def _in_child() -> None:
    for loop in list(_loops):
        loop.in_child()
        _loops.discard(loop)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_in_parent, after_in_child=_in_child)

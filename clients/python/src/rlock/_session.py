"""A session of threads: one daemon thread reads and beats, the program's threads send.

The socket never blocks and is touched only under the lock, which nobody holds for long: so
a server that does not read holds up nobody, and TLS is used by one thread at a time.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import ssl
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from ._acker import Acker
from ._clock import now
from ._connect import refusal
from ._core import GRACE, Core
from ._states import Pending, Request
from ._wait import wait

T = TypeVar("T")
log = logging.getLogger("rlock")

LATER = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Session:
    def __init__(self, make: Callable[[], Any], core: Core) -> None:
        self.core = core
        core.face = self
        self.lock = threading.Lock()
        self.forked = False
        self._abandoned = False
        self.make = make
        self.acker = Acker(self)
        core.on_unsure = self.acker.wanted
        self._connection: Any = None
        self._doomed: list[Any] = []  # to be closed by the thread
        self._selector = selectors.DefaultSelector()
        self._woken, self._wakes = socket.socketpair()
        self._woken.setblocking(False)
        self._wakes.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._sleeps_until = 0.0
        self._thread: threading.Thread | None = None
        _sessions.add(self)

    # For the program's threads.

    def act(self, step: Callable[[Core, float], T]) -> T:
        """Does it to the core, sends what that gave, and tells whom it concerns."""
        with self.lock:
            at = now()
            result = step(self.core, at)
            self._write()
            if self.core.drop:
                self._part(at)
            calls, self.core.calls = self.core.calls, []
            wake = self._must_wake()
        for call in calls:
            try:
                call()
            except Exception:
                log.exception("in a callback of a lost hold")
        if wake:
            self._wake()
        return result

    def wait(self, pending: Pending, event: threading.Event, cancel: threading.Event | None = None) -> bool:
        # The thread may be busy with connecting: nobody's time waits for that.
        return wait(pending, event, cancel, lambda: self._patience(pending), self._look)

    def _look(self) -> None:
        self.act(lambda core, at: core.timers.run(at))

    def _patience(self, pending: Pending) -> float | None:
        at = now()
        times = [at + self.core.timeout]
        if isinstance(pending, Request):
            times = [pending.until, pending.until + GRACE, pending.last] if pending.timer else []
        left = min((time - at for time in times if time > at), default=1.0 if times else None)
        return left and min(left + 0.001, threading.TIMEOUT_MAX)

    def close(self, wait: float) -> None:
        self.act(lambda core, at: core.close(at))
        thread = self._thread
        self._wake()
        if wait and thread and thread is not threading.current_thread():
            thread.join(wait)

    def abandon(self) -> None:
        """Like close, from the garbage collector: whoever runs it may have the lock."""
        self._abandoned = True
        self._wake()

    # For whoever has the lock.

    def _write(self) -> None:
        out = self.core.out
        if not out or not self._connection or self.core.drop:
            return
        try:
            while out:
                # A TLS socket that was not ready wants the same bytes again, and has them.
                del out[: self._connection._sock.send(bytes(out[:65536]))]
        except LATER:
            pass
        except OSError as error:
            self.core.drop = str(error) or type(error).__name__

    def _part(self, at: float) -> None:
        if self._connection:
            self._doomed.append(self._connection)
            self._connection = None
        self.core.ended(at, "")

    def _must_wake(self) -> bool:
        if not self._thread:
            if not self.core.busy:
                return False
            self._thread = threading.Thread(target=self._run, name="rlock", daemon=True)
            self._thread.start()
        due = self.core.next_time()
        return bool(self._doomed or self.core.out or due < self._sleeps_until)

    def _wake(self) -> None:
        try:
            self._wakes.send(b"\0")
        except OSError:
            pass  # it is full, and so the thread awakes; or closed

    # The thread.

    def _run(self) -> None:
        while not self._over():
            with self.lock:
                connect = self.core.connecting = self.core.wants_connection(now())
            if connect:
                self._connect()
            self._sleep()
            self.act(self._serve)
            self._bury()
        self._bury()
        self.acker.close()
        self._selector.close()
        self._woken.close()
        self._wakes.close()

    def _over(self) -> bool:
        with self.lock:
            core = self.core
            if not core.closed or (core.ready and (core.flight or core.out)):
                return False
            self._part(now())
            return True

    def _sleep(self) -> None:
        with self.lock:
            due, core = self.core.next_time(), self.core
            if core.closed and not core.ready:
                due = 0.0
            self._sleeps_until = due
            if self._connection:
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if core.out else 0)
                self._selector.modify(self._connection._sock, events)
        timeout = min(max(0.0, due - now()) + 0.0005, 3600.0)
        self._selector.select(timeout)
        self._sleeps_until = 0.0
        try:
            while self._woken.recv(4096):
                pass
        except OSError:
            pass

    def _serve(self, core: Core, at: float) -> None:
        if self._abandoned:
            core.close(at)
        try:
            while self._connection and not core.drop:
                data = self._connection._sock.recv(65536)
                if not data:
                    core.drop = "the server closed the connection"
                core.receive(data, at)
        except LATER:
            pass
        except OSError as error:
            core.drop = str(error) or type(error).__name__
        core.tick(at)

    def _connect(self) -> None:
        connection = self.make()
        self._doomed.append(connection)  # a child that is forked now closes it
        error: Exception | None = None
        try:
            connection.connect()
            connection._sock.setblocking(False)
        except Exception as caught:
            error = caught
        with self.lock:
            if self.forked:
                return
            if error is None:
                self._doomed.remove(connection)
                self._connection = connection
                self._selector.register(connection._sock, selectors.EVENT_READ)
                self.core.began(now())
            else:
                why = refusal(error)
                if why:
                    self.core._never(*why, now())
                self.core.ended(now(), str(error))
        self.act(lambda core, at: None)

    def _bury(self) -> None:
        with self.lock:
            doomed, self._doomed = self._doomed, []
        for connection in doomed:
            if connection._sock is not None:
                try:
                    self._selector.unregister(connection._sock)
                except (KeyError, ValueError):
                    pass
            connection.disconnect()

    # Fork.

    def _in_child(self) -> None:
        """Closes the child's copies, without a shutdown, which the parent would feel."""
        self.forked = True
        self.core.forked()
        self.core.calls.clear()  # told to nobody: the child only finds it so
        for connection in [self._connection, self.acker.connection, *self._doomed]:
            if connection is not None and connection._sock is not None:
                connection._sock.close()
        self._connection, self._doomed, self._thread = None, [], None
        self._selector.close()
        self._woken.close()
        self._wakes.close()


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()
_forking: list[Session] = []


def _before_fork() -> None:
    # With the locks held no session is in the middle of something in the child.
    _forking[:] = list(_sessions)
    for session in _forking:
        session.lock.acquire()


def _after_in_parent() -> None:
    for session in _forking:
        session.lock.release()
    _forking.clear()


def _after_in_child() -> None:
    for session in _forking:
        session._in_child()
        session.lock.release()
        _sessions.discard(session)
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)

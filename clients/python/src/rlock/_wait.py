"""A thread waits for something that may be called off."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ._states import Held, Pending, Request
from .errors import Cancelled


class Cancel(threading.Event):
    """`set` calls off the waits that were given it (`cancel=`), at once."""

    def __init__(self) -> None:
        super().__init__()
        self._wakes: dict[threading.Event, None] = {}

    def set(self) -> None:
        super().set()
        for event in list(self._wakes):
            event.set()

    def wakes(self, event: threading.Event) -> None:
        self._wakes[event] = None

    def forgets(self, event: threading.Event) -> None:
        self._wakes.pop(event, None)


def wait(
    pending: Pending,
    event: threading.Event,
    cancel: threading.Event | None,
    patience: Callable[[], float | None] = lambda: None,
    look: Callable[[], object] = lambda: None,
) -> bool:
    """Until it is over; False: `cancel` was set before. `look` after so long, if it is not."""
    if isinstance(cancel, Cancel):
        cancel.wakes(event)
    try:
        while not pending.finished:
            if cancel is not None and cancel.is_set():
                return False
            left = patience()
            if cancel is not None and not isinstance(cancel, Cancel):
                left = min(left or 0.1, 0.1)  # a plain Event tells nobody that it was set
            event.wait(left)
            if not pending.finished:
                look()
    finally:
        if isinstance(cancel, Cancel):
            cancel.forgets(event)
    return True


def taken(request: Request, wait: Callable[[], bool], give_up: Callable[[], object]) -> Held:
    """What the request became, or its error."""
    try:
        if not wait():
            raise Cancelled(f"the wait for {request.ask.name} was called off")
    except BaseException:  # KeyboardInterrupt too: the server is to hear of it
        give_up()
        raise
    return outcome(request)


def outcome(request: Request) -> Held:
    """Of a request that is over."""
    if request.error:
        raise request.error
    assert request.held
    return request.held

"""Something to do when the event loop ends, before it is closed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any


class AtEnd:
    """`asyncio.run` ends its tasks, and then closes the asynchronous generators that were begun
    in it: this is one. So no task has to wait for that, or be left over in a loop that is closed.

    Whoever has it begins it once it is held: one that is lost acts too, for the garbage collector ends it."""

    def __init__(self, act: Callable[[], Awaitable[None]]) -> None:
        self._act: Callable[[], Awaitable[None]] | None = act
        self._generator = self._wait()

    def begin(self) -> None:
        self._step(self._generator.__anext__())

    async def _wait(self) -> AsyncGenerator[None, None]:
        try:
            yield
        except GeneratorExit:  # no other exception is the end
            act, self._act = self._act, None
            if act:
                await act()

    def cancel(self) -> None:
        if self._act:
            self._act = None
            self._step(self._generator.aclose())

    @staticmethod
    def _step(awaitable: Any) -> None:
        try:
            awaitable.send(None)
        except StopIteration:
            pass

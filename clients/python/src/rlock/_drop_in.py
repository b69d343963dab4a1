"""What both drop-ins for redis-py's Lock share."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from redis.exceptions import LockError, LockNotOwnedError

from ._ask import Ask, ask
from .errors import Deadlock, Error, Lost, NotAcquired, Refused

L = TypeVar("L")


def wanted(name: Any, timeout: Any, blocking: bool, blocking_timeout: Any) -> Ask:
    """A plain lease of `timeout`; without one the server renews it while we are connected."""
    wait = 0 if not blocking else math.inf if blocking_timeout is None else max(0, blocking_timeout)
    lease = {} if timeout is None else {"lease": timeout, "watchdog": False}
    return ask(name if isinstance(name, (str, bytes)) else str(name), wait=wait, **lease)


def owner_of(encoder: Any, token: Any) -> str:
    return str(encoder.encode(token).decode())


def lock_error(error: Error, name: Any) -> LockError:
    if isinstance(error, (Lost, Refused)):
        if isinstance(error, Lost) or error.code in ("NOTHELD", "WRONGTYPE"):
            return named(LockNotOwnedError(str(error)), name)
    return named(LockError(str(error)), name)


def acquire_error(error: Error, name: Any) -> LockError | None:
    """None: somebody else has it."""
    if isinstance(error, NotAcquired):
        return None
    if isinstance(error, Deadlock):
        return named(LockError(f"DEADLOCK {error}"), name)
    return named(LockError(str(error)), name)


def named(error: LockError, name: Any) -> LockError:
    error.lock_name = name  # not all versions take it as an argument
    return error


def is_held(info: Any, owner: bytes | None = None) -> bool:
    """By somebody; or by `owner`."""
    holders = [_fields(holder) for holder in _fields(info)[b"holders"]]
    if owner is None:
        return bool(holders)
    return any(_bytes(holder[b"owner"]) == owner for holder in holders)


def _fields(reply: Any) -> dict[bytes, Any]:
    """A map, which in RESP2 is a flat array."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    return {_bytes(key): value for key, value in pairs}


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


class OfClients:
    """The locks that the drop-ins of one client share; they end with the client."""

    def __init__(self, make: Callable[[Any], L]) -> None:
        self._make = make
        self._all: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def __getitem__(self, client: Any) -> Any:
        found = self._all.get(client)
        return found or self._all.setdefault(client, self._make(client))

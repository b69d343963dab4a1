"""What both drop-ins for redis-py's Lock share."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from redis import exceptions
from redis.exceptions import LockError, LockNotOwnedError, ResponseError

from ._ask import Ask, ask, lease_ms
from ._backend import LESS, Words, library, said, script
from .errors import ConnectionError, Deadlock, Error, Lost, NotAcquired, Refused

L = TypeVar("L")


def wanted(name: Any, timeout: Any, blocking: bool, blocking_timeout: Any) -> Ask:
    """A plain lease of `timeout`; without one, or with 0, which is none to redis-py either, the
    server renews it while we are connected."""
    wait = 0 if not blocking else math.inf if blocking_timeout is None else max(0, blocking_timeout)
    lease = {"lease": timeout, "watchdog": False} if timeout else {}
    return ask(name if isinstance(name, (str, bytes)) else str(name), wait=wait, **lease)


def owner_of(encoder: Any, token: Any) -> str:
    try:
        return str(encoder.encode(token).decode())
    except UnicodeDecodeError:
        raise LockError(f"the token is the owner of the lock here, and has to be UTF-8: not {token!r}") from None


def lease_of(seconds: Any) -> int:
    """ms. To redis-py a lock that is extended to nothing is gone: here `release` says that."""
    try:
        return lease_ms(seconds)
    except ValueError as error:
        raise LockError(f"{error}: a lock without time left is released by release()") from None


def redis_error(error: Error | ValueError, name: Any) -> Exception:
    """What redis-py would raise."""
    code = error.code if isinstance(error, Refused) else ""
    if isinstance(error, Lost) or code in ("NOTHELD", "WRONGTYPE"):
        return named(LockNotOwnedError(str(error)), name)
    if isinstance(error, ConnectionError):
        return exceptions.ConnectionError(str(error))
    if code in ("NOAUTH", "WRONGPASS"):
        return exceptions.AuthenticationError(str(error))
    if code == "NOPERM":
        return exceptions.NoPermissionError(str(error))
    return named(LockError(f"DEADLOCK {error}" if isinstance(error, Deadlock) else str(error)), name)


def acquire_error(error: Error | ValueError, name: Any) -> Exception | None:
    """None: somebody else has it."""
    if isinstance(error, NotAcquired):
        return None
    if isinstance(error, Refused) and error.code == "WRONGTYPE":
        return named(LockError(str(error)), name)
    return redis_error(error, name)


def over_client(client: Any, locks: Any, *words: Any) -> Any:
    """What the server replies to a command of rlock, over the program's own client."""
    asks, reply = _asks(words, locks.backend, hasattr(client, "nodes_manager")), None
    while True:
        try:
            asked = asks.send(reply)
        except StopIteration as end:
            return _replied(end.value)
        try:
            reply = client.execute_command(*asked)
        except ResponseError as error:
            reply = error


async def over_client_async(client: Any, locks: Any, *words: Any) -> Any:
    asks, reply = _asks(words, locks.backend, hasattr(client, "nodes_manager")), None
    while True:
        try:
            asked = asks.send(reply)
        except StopIteration as end:
            return _replied(end.value)
        try:
            reply = await client.execute_command(*asked)
        except ResponseError as error:
            reply = error


def _replied(reply: Any) -> Any:
    if isinstance(reply, ResponseError):
        raise reply
    return reply


def _asks(words: Words, known: Any, cluster: bool) -> Generator[Words, Any, Any]:
    """What is known is asked first, and then what can do less."""
    loads: dict[str, Words] = {"functions": ("FUNCTION LOAD", library()), "script": ("SCRIPT LOAD", script()[0])}
    reply = None
    for backend in LESS[LESS.index(known) if known else 0 :]:
        reply = yield said(words, backend, cluster)
        if _is_absent(reply) and backend in loads and not _unknown(reply):
            yield loads[backend]
            reply = yield said(words, backend, cluster)
        unable = backend == "functions" and isinstance(reply, exceptions.NoPermissionError)
        if not (unable or _is_absent(reply)):
            break
    return reply


def _is_absent(reply: Any) -> bool:
    gone = isinstance(reply, ResponseError) and "Function not found" in str(reply)
    return gone or _unknown(reply) or isinstance(reply, exceptions.NoScriptError)


def _unknown(reply: Any) -> bool:
    return isinstance(reply, ResponseError) and "unknown command" in str(reply).lower()


def not_a_lock(error: ResponseError) -> None:
    """The key is something else's; any other error is raised."""
    if not str(error).startswith("WRONGTYPE"):
        raise error


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

"""What a program can ask for, checked, and the commands that say it."""

from __future__ import annotations

import math
import os
import socket
import uuid
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple, Optional, Union

from ._beat import Counted, counted
from ._resp import Word

if TYPE_CHECKING:
    from typing_extensions import TypedDict
else:
    from typing import TypedDict

Key = Union[str, bytes]
Keys = Union[Key, Iterable[Key]]
Duration = Union[float, timedelta]
Mode = Literal["read", "write"]

VERSION = "0.9.0"
NAME = f"rlock-python-{VERSION}"
HOST = socket.gethostname()
LONGEST = 2**53 - 1  # ms: the most that the server takes
MOST_BYTES = 2**19  # of all keys of a request: a server may be set to close a connection that sends 1 MB
MOST_TIME = 1e9  # s: the most that a socket waits, with room to add


class Options(TypedDict, total=False):
    """What `acquire` and `hold` take besides the key. Times: seconds, or a `timedelta`.

    wait: how long to wait; None (the default): not at all; `math.inf`: for ever.
    lease: how long the lock outlives a holder that is gone (10).
    watchdog: the server renews the lease while the connection is open (True). Without it
        the hold ends with its lease, unless `renew` is called.
    max: the hold is released, and lost, after so long. Only with the watchdog.
    mode: "read" or "write".
    limit, permits: the lock has `limit` permits; take so many of them (1).
    acks, acks_time: so many replicas have the hold before the program has it, within
        `acks_time` (1).
    """

    wait: Optional[Duration]
    lease: Duration
    watchdog: bool
    max: Optional[Duration]
    mode: Optional[Mode]
    limit: Optional[int]
    permits: int
    acks: int
    acks_time: Duration


class Ask(NamedTuple):
    """A request, checked. `wait` and `max` are seconds, the other times ms."""

    name: str
    keys: tuple[bytes, ...]
    words: tuple[Word, ...]  # of ACQUIRE
    mode: tuple[Word, ...]  # of CANCEL and RENEW
    returned: tuple[Word, ...]  # of RELEASE
    wait: float
    lease: int
    watchdog: bool
    max: float | None
    acks: int
    acks_ms: int

    def acquire(
        self, owner: str, left: float | None, channel: str, tag: int, hint: bool = False
    ) -> tuple[Word, ...]:
        """`left`: the seconds that it may wait still; None: it does not wait. `hint`: with the news that somebody waits."""
        queue: tuple[Word, ...] = ()
        if left is not None:
            queue = ("QUEUE", 0 if left == math.inf else min(ms_up(left), LONGEST))
        more = (*(("WANTED",) if hint else ()), *(("WATCHDOG",) if self.watchdog else ()))
        named = self._named("ACQUIRE", owner, self.lease)
        return (*named, *self.words, *queue, "NOTIFY", channel, tag, *more, "ONCE")

    def attempt(self, owner: str) -> tuple[Word, ...]:
        """Where there is no module: without what only that knows."""
        return (*self._named("ACQUIRE", owner, self.lease), *self.words, "ONCE")

    def release(self, owner: str, token: int) -> tuple[Word, ...]:
        if len(self.keys) > 1:
            return self._named("RELEASE", owner)
        return ("RLOCK.RELEASE", self.keys[0], owner, *self.returned, "IFTOKEN", token)

    def release_all(self, owner: str) -> tuple[Word, ...]:
        if len(self.keys) > 1:
            return self._named("RELEASE", owner)
        return ("RLOCK.RELEASE", self.keys[0], owner, *self.mode, "ALL", "IFHELD")

    def cancel(self, owner: str) -> tuple[Word, ...]:
        return ("RLOCK.CANCEL", self.keys[0], owner, *self.mode)

    def renew(self, owner: str, lease: int) -> tuple[Word, ...]:
        return (*self._named("RENEW", owner, lease), *self.mode)

    def counted(self, lease: int | None = None) -> Counted:
        """What it is for the heartbeat, with another lease if one is given."""
        return counted(lease or self.lease, self.watchdog)

    def _named(self, verb: str, *rest: Word) -> tuple[Word, ...]:
        if len(self.keys) > 1:
            return (f"RLOCK.M{verb}", len(self.keys), *self.keys, *rest)
        return (f"RLOCK.{verb}", self.keys[0], *rest)


def ask(
    key: Keys,
    *,
    wait: Duration | None = None,
    lease: Duration = 10,
    watchdog: bool = True,
    max: Duration | None = None,
    mode: Mode | None = None,
    limit: int | None = None,
    permits: int = 1,
    acks: int = 0,
    acks_time: Duration = 1,
) -> Ask:
    names, keys = _named(key)
    for number, what in ((limit, "limit"), (permits, "permits"), (acks, "acks")):
        if isinstance(number, bool) or not (isinstance(number, int) or number is limit is None):
            raise TypeError(f"{what}: a whole number, not {number!r}")
    if not keys:
        raise ValueError("which key?")
    if not all(keys):
        raise ValueError("a key must not be empty")
    if sum(map(len, keys)) > MOST_BYTES:
        raise ValueError(f"the keys of a request are at most {MOST_BYTES:,} bytes together")
    if len(set(keys)) < len(keys):
        raise ValueError("a key is given twice")
    if len(keys) > 1024:
        raise ValueError("at most 1,024 keys at once")
    if mode not in (None, "read", "write"):
        raise ValueError(f'mode is "read" or "write", not {mode!r}')
    if mode and limit is not None:
        raise ValueError("mode and limit do not go together")
    if len(keys) > 1 and (mode or limit is not None):
        raise ValueError("several keys are plain locks: no mode, no limit")
    if limit is None and permits != 1:
        raise ValueError("permits need a limit")
    if limit is not None and not 1 <= permits <= limit <= 1_000_000:
        raise ValueError("1 <= permits <= limit <= 1,000,000")
    if max is not None and not watchdog:
        raise ValueError("max bounds a hold with watchdog; without it the lease does")
    if acks < 0:
        raise ValueError("acks: how many replicas, 0 or more")
    if acks and len(keys) > 1:
        raise ValueError("acks are for one key")
    words: tuple[Word, ...] = (mode.upper(),) if mode else ()
    short = returned = words
    if limit is not None:
        words, short, returned = ("LIMIT", limit, "PERMITS", permits), ("PERMITS",), ("PERMITS", permits)
    return Ask(
        name=", ".join(str(name) if isinstance(name, str) else repr(name) for name in names),
        keys=keys,
        words=words,
        mode=short,
        returned=returned,
        wait=0 if wait is None else seconds(wait, "wait", least=0, endless=True),
        lease=lease_ms(lease),
        watchdog=watchdog,
        max=None if max is None else seconds(max, "max"),
        acks=acks,
        acks_ms=ms_up(socket_time(acks_time, "acks_time")),
    )


def _named(key: Keys) -> tuple[list[Key], tuple[bytes, ...]]:
    wrong = "a key is a str or bytes, or several of them in a list"
    if not isinstance(key, Iterable) or isinstance(key, (bytearray, memoryview)):
        raise TypeError(f"{wrong}: not {key!r}")
    names = [key] if isinstance(key, (str, bytes)) else list(key)
    for name in names:
        if not isinstance(name, (str, bytes)):
            raise TypeError(f"{wrong}: not {name!r}")
    return names, tuple(name if isinstance(name, bytes) else name.encode() for name in names)


def seconds(
    value: Duration, what: str, least: float = 1e-9, endless: bool = False, most: float = LONGEST / 1000
) -> float:
    """With `endless` a time of more than `most` is for ever too."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what}: seconds or a timedelta, not {value!r}")
    if math.isnan(value) or value < least:
        raise ValueError(f"{what}: {value} s cannot be")
    if value <= most:
        return float(value)
    if endless:
        return math.inf
    raise ValueError(f"{what}: {value} s cannot be: at most {most:g} s")


def socket_time(value: Duration, what: str) -> float:
    return seconds(value, what, most=MOST_TIME)


def lease_ms(value: Duration) -> int:
    return ms_up(seconds(value, "lease"))


def patience_ms(value: Duration | None) -> int | None:
    return None if value is None else ms_up(seconds(value, "patience"))


def ms_up(value: float) -> int:
    """Rounded up, and never 0: 0 has a meaning of its own."""
    return max(1, math.ceil(value * 1000))


def fresh_owner() -> str:
    return f"{HOST}:{os.getpid()}:{os.urandom(16).hex()}"


def fresh_channel() -> str:
    return f"rlock:{uuid.uuid4()}"

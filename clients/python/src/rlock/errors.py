"""What can go wrong, each a type of its own. Bad arguments are ValueError and TypeError."""

from __future__ import annotations

import builtins

__all__ = [
    "Cancelled",
    "ConnectionError",
    "Deadlock",
    "Error",
    "HeldByJob",
    "Lost",
    "NotAcquired",
    "Refused",
]


class Error(Exception):
    """What all errors of rlock have in common."""


class NotAcquired(Error):
    """Somebody else has the lock, and had it for the whole wait.

    `held_by` is the owner, if it is a hold of these very `Locks`; None: not known.
    """

    def __init__(self, keys: tuple[bytes, ...] = (), held_by: str | None = None) -> None:
        super().__init__(keys, held_by)
        self.keys = keys
        self.held_by = held_by

    @property
    def key(self) -> str:
        """The key, or the first of them."""
        return self.keys[0].decode(errors="backslashreplace") if self.keys else ""

    def __str__(self) -> str:
        names = ", ".join(key.decode(errors="backslashreplace") for key in self.keys)
        by = f"{self.held_by}, of this process," if self.held_by else "somebody else"
        return f"{by} has {names}"


class Lost(Error):
    """The hold was lost: its owner was not alone for all that time.

    `reason` is one of the server's (`forced`, `deleted`, `expired`, `silent`, ...) or `connection`,
    `max`, `fork`, `closed`, `lease`.
    """

    def __init__(self, reason: str, key: str = "") -> None:
        super().__init__(f"the hold of {key} was lost: {reason}" if key else reason)
        self.reason = reason


class Deadlock(Error):
    """The wait would never have ended by itself. The text names the cycle."""


class HeldByJob(Error):
    """The job holds the key, or waits for it, already: use `hold.again()`."""


class Refused(Error):
    """The server refused the command. `code` is its first word, such as `NOREPLICAS`."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(code, text)  # what it is made of again in another process
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return f"{self.code} {self.text}".strip()


class ConnectionError(Error, builtins.ConnectionError):
    """There was no connection to the server within the time, or the locks are closed."""


class Cancelled(Error):
    """The wait was cancelled by the program (`cancel=`)."""

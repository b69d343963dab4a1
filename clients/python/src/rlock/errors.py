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
    """Somebody else has the lock, and had it for the whole wait."""


class Lost(Error):
    """The hold was lost: its owner was not alone for all that time.

    `reason` is one of the server's (`forced`, `deleted`, `expired`, ...) or `connection`,
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
        super().__init__(f"{code} {text}".strip())
        self.code = code
        self.text = text


class ConnectionError(Error, builtins.ConnectionError):
    """There was no connection to the server within the time, or the locks are closed."""


class Cancelled(Error):
    """The wait was called off by the program (`cancel=`)."""

"""rlock: distributed locks of Redis and Valkey, with fencing tokens.

    locks = rlock.Locks(redis.Redis())
    with locks.hold("jobs", wait=10) as hold:
        ...

For asyncio: `rlock.asyncio`.
"""

from ._ask import VERSION, Options
from ._hold import Hold, Scope
from ._lock import Lock
from ._locks import Job, Locks
from ._loss import Loss
from ._quorum import Quorum
from ._sticky import Sticky, Use
from ._wait import Cancel
from ._wanted import Wanted
from .errors import (
    Cancelled,
    ConnectionError,
    Deadlock,
    Error,
    HeldByJob,
    Lost,
    NotAcquired,
    Refused,
)

__version__ = VERSION

__all__ = [
    "Cancel",
    "Cancelled",
    "ConnectionError",
    "Deadlock",
    "Error",
    "HeldByJob",
    "Hold",
    "Job",
    "Lock",
    "Locks",
    "Loss",
    "Lost",
    "NotAcquired",
    "Options",
    "Quorum",
    "Refused",
    "Scope",
    "Sticky",
    "Use",
    "Wanted",
]

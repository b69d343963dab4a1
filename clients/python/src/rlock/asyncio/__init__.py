"""rlock for asyncio.

    locks = rlock.asyncio.Locks(redis.asyncio.Redis())
    async with locks.hold("jobs", wait=10) as hold:
        ...
"""

from ._hold import Hold, Loss, Scope, Wanted
from ._lock import Lock
from ._locks import Job, Locks
from ._quorum import Quorum
from ._sticky import Sticky, Use

__all__ = ["Hold", "Job", "Lock", "Locks", "Loss", "Quorum", "Scope", "Sticky", "Use", "Wanted"]

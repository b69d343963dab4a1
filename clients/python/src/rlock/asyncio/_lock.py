"""redis-py's asyncio Lock, by rlock's commands: `client.lock("jobs", lock_class=rlock.asyncio.Lock)`."""

from __future__ import annotations

import uuid
from typing import Any, Literal

import redis.asyncio.lock
from redis.exceptions import LockError, LockNotOwnedError, ResponseError

from .._drop_in import (
    OfClients,
    acquire_error,
    is_held,
    lease_of,
    named,
    not_a_lock,
    over_client_async,
    owner_of,
    redis_error,
    wanted,
)
from .._states import JobState
from ..errors import Error
from ._hold import Hold
from ._locks import Locks

locks_of = OfClients(Locks)


class Lock(redis.asyncio.lock.Lock):
    """Has the interface of `redis.asyncio.lock.Lock`, and its errors.

    With `timeout` it is a plain lease. Without, the server renews it as long as this process
    is connected, and frees it when it is not. Who waits is served in the order of coming, so
    `sleep` has no meaning. The token that redis-py keeps in the key is the lock's owner here;
    the fencing token is `fence`.
    """

    def register_scripts(self) -> None:
        """There are none."""

    @property
    def fence(self) -> int | None:
        """The fencing token, for storage that refuses a smaller one; None: not acquired."""
        return self._hold.token if self._hold else None

    @property
    def _hold(self) -> Hold | None:
        hold: Hold | None = getattr(self.local, "hold", None)
        return hold if hold and hold.owner.encode() == self.local.token else None

    async def acquire(
        self, blocking: bool | None = None, blocking_timeout: Any = None, token: Any = None
    ) -> bool:
        blocking = self.blocking if blocking is None else blocking
        blocking_timeout = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        job = JobState(owner_of(self.redis.get_encoder(), uuid.uuid1().hex if token is None else token))
        try:
            asked = wanted(self.name, self.timeout, blocking, blocking_timeout)
            hold = await locks_of[self.redis]._take(asked, job)
        except (Error, ValueError) as error:
            if failure := acquire_error(error, self.name):
                raise failure from error
            return False
        self.local.hold, self.local.token = hold, job.owner.encode()
        return True

    async def locked(self) -> bool:
        try:
            return is_held(await self._ask("RLOCK.INFO"))
        except ResponseError as error:
            not_a_lock(error)
            return True

    async def owned(self) -> bool:
        token = getattr(self.local, "token", None)
        try:
            return token is not None and is_held(await self._ask("RLOCK.INFO"), token)
        except ResponseError as error:
            not_a_lock(error)
            return False

    async def release(self) -> None:
        if getattr(self.local, "token", None) is None or self._hold is None:
            self.local.hold = None
        try:
            await super().release()
        finally:
            self.local.hold = None  # whatever struck: a hold that nobody has is released

    async def do_release(self, expected_token: Any) -> None:
        hold, self.local.hold = self.local.hold, None
        if hold is None:  # acquired elsewhere, and the token handed over
            await self._say("RLOCK.RELEASE", expected_token)
            return
        try:
            await hold.release()
        except Error as error:
            raise redis_error(error, self.name) from error

    async def do_extend(self, additional_time: Any, replace_ttl: bool) -> Literal[True]:
        left = 0 if replace_ttl else max(0, await self.redis.pttl(self.name)) / 1000
        return await self._renew(left + additional_time)

    async def do_reacquire(self) -> Literal[True]:
        if not self.timeout:
            raise named(LockError("Cannot reacquire a lock with no timeout"), self.name)
        return await self._renew(self.timeout)

    async def _renew(self, lease: Any) -> Literal[True]:
        ms = lease_of(lease)
        if self._hold is None:
            await self._say("RLOCK.RENEW", self.local.token, ms)
            return True
        try:
            await self._hold.renew(lease)
        except Error as error:
            raise redis_error(error, self.name) from error
        return True

    async def _ask(self, verb: str, *words: Any) -> Any:
        return await over_client_async(self.redis, locks_of[self.redis], verb, self.name, *words)

    async def _say(self, verb: str, *words: Any) -> None:
        try:
            await self._ask(verb, *words)
        except ResponseError as error:
            raise named(LockNotOwnedError(str(error)), self.name) from error

"""What mypy has to refuse: an ignore that it does not need is an error of its own."""

import redis
import redis.asyncio

import rlock
import rlock.asyncio

rlock.Locks("redis://localhost")  # type: ignore[arg-type]
rlock.Locks(redis.asyncio.Redis())  # type: ignore[arg-type]
rlock.Quorum([redis.asyncio.Redis()])  # type: ignore[list-item]
rlock.asyncio.Locks("redis://localhost")  # type: ignore[arg-type]
rlock.asyncio.Locks(redis.Redis())  # type: ignore[arg-type]
rlock.asyncio.Quorum([redis.Redis()])  # type: ignore[list-item]
rlock.Locks(redis.Redis())
rlock.Locks(redis.RedisCluster())
rlock.Quorum([redis.Redis()])
rlock.asyncio.Locks(redis.asyncio.Redis())
rlock.asyncio.Locks(redis.asyncio.RedisCluster())

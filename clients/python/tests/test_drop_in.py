"""rlock.Lock in the place of redis-py's. Its own tests: redis_py_locks.py."""

import asyncio

import pytest
import redis
import redis.asyncio
from redis.exceptions import LockError, LockNotOwnedError
from servers import InThread, until

import rlock
import rlock.asyncio


@pytest.fixture
def client(server):
    with redis.Redis(port=server.port) as client:
        yield client


def test_with_a_timeout_it_is_a_plain_lease(server, client, key):
    with client.lock(key, timeout=20, lock_class=rlock.Lock) as lock:
        holder = server.info(key)[b"holders"][0]
        assert holder[b"owner"] == lock.local.token and holder[b"token"] == lock.fence
        assert holder[b"watchdog"] is None and 10_000 < client.pttl(key) <= 20_000
        lock.extend(10)
        assert 25_000 < client.pttl(key) <= 30_000
        lock.reacquire()
        assert 10_000 < client.pttl(key) <= 20_000
        assert lock.locked() and lock.owned()
    assert not lock.locked() and not lock.owned() and lock.fence is None


def test_without_it_lives_as_long_as_its_process(server, client, key):
    lock = client.lock(key, lock_class=rlock.Lock)
    assert lock.acquire()
    assert server.info(key)[b"holders"][0][b"watchdog"]
    lock.release()
    assert server.is_free(key)


def test_who_waits_is_woken(server, client, key):
    first = client.lock(key, lock_class=rlock.Lock)
    first.acquire()
    second = client.lock(key, lock_class=rlock.Lock, blocking_timeout=20, thread_local=False)
    waits = InThread(second.acquire)
    assert until(lambda: server.waiters(key) == 1)
    assert not client.lock(key, lock_class=rlock.Lock, blocking=False).acquire()
    first.release()
    assert waits.result() is True
    second.release()


def test_errors_are_those_of_redis(server, client, key):
    lock = client.lock(key, timeout=20, lock_class=rlock.Lock)
    with pytest.raises(LockError):
        lock.release()
    lock.acquire()
    server.say(f"RLOCK.FORCE {key}")
    with pytest.raises(LockNotOwnedError):
        lock.extend(1)
    with pytest.raises(LockNotOwnedError):
        lock.release()


def test_a_token_that_was_handed_over(server, client, key):
    lock = client.lock(key, timeout=20, lock_class=rlock.Lock)
    lock.acquire(token="mine")
    other = client.lock(key, timeout=20, lock_class=rlock.Lock)
    other.local.token = b"mine"
    other.reacquire()
    other.release()
    assert server.is_free(key)


def test_asyncio(server, key):
    async def main():
        client = redis.asyncio.Redis(port=server.port)
        async with client.lock(key, timeout=20, lock_class=rlock.asyncio.Lock) as lock:
            assert await lock.locked() and await lock.owned() and lock.fence
            await lock.extend(10)
            other = client.lock(key, lock_class=rlock.asyncio.Lock, blocking_timeout=0.1)
            assert not await other.acquire()
        assert server.is_free(key)
        await client.aclose()

    asyncio.run(main())

"""What is raised at once, and what may not be raised: that somebody has a lock of which nobody knows."""

import asyncio
import contextlib
import os
import resource
import time

import pytest
import redis
import redis.asyncio
from cluster import Cluster
from servers import InThread, Server, until

import rlock
import rlock.asyncio


def test_a_client_of_another_kind():
    sync, tasks = redis.Redis(), redis.asyncio.Redis()
    cases = [
        (rlock.Locks, "redis://localhost", "redis.Redis or redis.RedisCluster, not 'redis://localhost'.*from_url"),
        (rlock.Locks, tasks, "that is for rlock.asyncio.Locks"),
        (rlock.Locks, None, "redis.Redis or redis.RedisCluster"),
        (rlock.asyncio.Locks, sync, "that is for rlock.Locks"),
        (rlock.asyncio.Locks, "redis://localhost", "redis.asyncio.Redis or redis.asyncio.RedisCluster"),
        (rlock.Quorum, [tasks], "that is for rlock.asyncio.Quorum"),
        (rlock.Quorum, ["redis://localhost"], "from_url"),
        (rlock.asyncio.Quorum, [sync], "that is for rlock.Quorum"),
    ]
    for make, client, text in cases:
        began = time.monotonic()
        with pytest.raises(TypeError, match=text):
            make(client)
        assert time.monotonic() - began < 10


def test_a_plain_client_at_a_node_of_a_cluster(tmp_path, face):
    cluster = Cluster(tmp_path)
    try:
        locks, began = face(cluster.masters[0].port), time.monotonic()
        with pytest.raises(rlock.Refused, match="give Locks a RedisCluster") as caught:
            locks.acquire(cluster.key_at(1), wait=30)
        assert caught.value.code == "MOVED" and time.monotonic() - began < 20
        with pytest.raises(rlock.Refused, match="give Locks a RedisCluster"):
            locks.acquire(cluster.key_at(0), wait=30)
    finally:
        cluster.kill()


def test_a_server_without_the_module(tmp_path, face, monkeypatch):
    monkeypatch.setattr(Server, "words", ())
    server = Server(tmp_path)
    try:
        server.say("ACL SETUSER default -@scripting")
        locks, began = face(server.port), time.monotonic()
        with pytest.raises(rlock.Refused, match="no rlock module.*redis-cli -x FUNCTION LOAD") as caught:
            locks.acquire("key", wait=30)
        assert caught.value.code == "NOPERM" and time.monotonic() - began < 20
        lock = redis.Redis(port=server.port).lock("key", lock_class=rlock.Lock)
        with pytest.raises(redis.exceptions.NoPermissionError):
            lock.locked()
    finally:
        server.kill()


@pytest.mark.parametrize("wait", [None, 0.3, 2])
def test_a_server_that_stands_still_is_not_somebody_who_has_it(own_server, face, key, wait):
    locks = face(own_server.port, timeout=5)
    locks.release(locks.acquire(key))
    own_server.stop()
    with pytest.raises(rlock.ConnectionError):
        locks.acquire(key, wait=wait)
    own_server.go_on()
    assert until(lambda: own_server.is_free(key) and own_server.waiters(key) == 0)
    locks.release(locks.acquire(key, wait=20))


def test_a_server_that_stops_while_somebody_waits(own_server, face, key):
    own_server.say(f"RLOCK.ACQUIRE {key} other 60000")
    locks = face(own_server.port, timeout=5)
    waits = InThread(lambda: locks.acquire(key, wait=10))
    assert until(lambda: own_server.waiters(key) == 1)
    own_server.stop()
    with pytest.raises(rlock.ConnectionError):
        waits.result()
    own_server.go_on()
    assert until(lambda: own_server.waiters(key) == 0)
    with pytest.raises(rlock.NotAcquired):
        locks.acquire(key, wait=0.3)


def test_not_acquired_says_which_key_and_who(server, face, key):
    locks, other = face(server.port), face(server.port)
    hold = locks.acquire(key)
    with pytest.raises(rlock.NotAcquired, match=hold.owner) as caught:
        locks.acquire([f"{key}:2", key])
    assert caught.value.keys == (f"{key}:2".encode(), key.encode()) and caught.value.key == f"{key}:2"
    assert caught.value.held_by == hold.owner
    with pytest.raises(rlock.NotAcquired, match=f"somebody else has {key}") as caught:
        other.acquire(key, wait=0.05)
    assert caught.value.key == key and caught.value.held_by is None
    locks.release(hold)


def test_connections_have_a_name(own_server, face, key):
    locks = face(own_server.port)
    locks.release(locks.acquire(key))
    with pytest.raises(rlock.Refused):
        locks.acquire(key, acks=1, acks_time=0.01)
    names = [client["name"] for client in own_server.admin.client_list() if client["name"].startswith("rlock-python-")]
    assert names == [f"rlock-python-{rlock.__version__}"] * 2


def test_who_may_not_name_a_connection_has_none(server, face, key):
    server.say("ACL SETUSER unnamed on nopass ~* &* +@all -client|setname")
    client = redis.Redis(port=server.port, username="unnamed", password="x", client_name=None)
    with rlock.Locks(client) as locks, locks.hold(key):
        pass


@contextlib.contextmanager
def no_file_number():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 20, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in taken:
            os.close(number)


def test_nothing_can_be_opened(server, key):
    """It goes on once there is a file number again."""
    locks = rlock.Locks(redis.Redis(port=server.port))
    with no_file_number():
        waits = InThread(lambda: locks.acquire(key, wait=30))
        time.sleep(0.2)
    waits.result().release()
    locks.close()


def test_nothing_can_be_opened_within_the_time(server, key):
    """So there is no connection, and it says why."""
    locks = rlock.Locks(redis.Redis(port=server.port), timeout=0.3)
    with no_file_number():
        tries = InThread(lambda: locks.acquire(key))
        with pytest.raises(rlock.ConnectionError, match="open files"):
            tries.result()
    locks.close()
    with rlock.Locks(redis.Redis(port=server.port)) as locks:
        locks.acquire(key).release()


def test_a_release_that_is_refused_for_longer_than_the_lease(own_server, face, key):
    locks = face(own_server.port)
    hold = locks.acquire(key, lease=6)
    own_server.say("ACL SETUSER default -rlock.release")
    with pytest.raises(rlock.Refused, match="rlock.release"):
        locks.release(hold)
    end = time.monotonic() + 8
    while time.monotonic() < end:
        assert not own_server.is_free(key)  # the server renews it
        time.sleep(0.1)
    own_server.say("ACL SETUSER default +rlock.release")
    assert until(lambda: own_server.is_free(key))


@pytest.mark.parametrize("keys", [1, 2])
def test_a_job_asks_again_when_its_release_was_taken(own_server, key, keys):
    """It would be given the hold that is about to end."""
    keys = [f"{key}:{n}" for n in range(keys)]
    verb = "rlock.release" if len(keys) == 1 else "rlock.mrelease"
    with rlock.Locks(redis.Redis(port=own_server.port), timeout=5) as locks:
        job = locks.job()
        hold = job.acquire(keys, lease=6)
        own_server.say(f"ACL SETUSER default -{verb}")
        with pytest.raises(rlock.Refused, match=verb):
            hold.release()
        with pytest.raises(rlock.HeldByJob, match="has not taken"):
            job.acquire(keys[0])
        with pytest.raises(rlock.HeldByJob, match="has not taken"):
            job.acquire(keys[0], wait=1.5)
        other = job.acquire("other")
        waits = InThread(lambda: job.acquire(keys[0], wait=30))
        own_server.say(f"ACL SETUSER default +{verb}")
        again = waits.result()
        assert again.token > hold.token
        time.sleep(8)
        assert again.lost.reason is None and not own_server.is_free(keys[0])
        assert all(own_server.is_free(one) for one in keys[1:])
        again.release()
        other.release()
        assert own_server.is_free(keys[0])


def test_drop_in_refuses_as_redis_py_does(own_server, key):
    with redis.Redis(port=own_server.port) as client:
        forever = client.lock(key, timeout=0, lock_class=rlock.Lock)
        assert forever.acquire() and own_server.info(key)[b"holders"][0][b"watchdog"]
        with pytest.raises(redis.exceptions.LockError, match="no timeout"):
            forever.reacquire()
        forever.release()
        lock = client.lock(key, timeout=20, lock_class=rlock.Lock)
        with pytest.raises(redis.exceptions.LockError, match="UTF-8"):
            lock.acquire(token=b"\xff")
        lock.acquire()
        assert lock.extend(0) and 0 < client.pttl(key) <= 20_000
        for seconds in (0, -5):
            with pytest.raises(redis.exceptions.LockError, match="release"):
                lock.extend(seconds, replace_ttl=True)
        lock.release()
        with pytest.raises(redis.exceptions.LockError):
            client.lock(key, timeout=-1, lock_class=rlock.Lock).acquire()
        nobody = redis.Redis(port=own_server.port, username="nobody", password="wrong")
        with pytest.raises(redis.exceptions.AuthenticationError):
            nobody.lock(key, timeout=20, lock_class=rlock.Lock).acquire()
        own_server.say("ACL SETUSER low on nopass ~* &* +@all -rlock.acquire")
        low = redis.Redis(port=own_server.port, username="low", password="x")
        with pytest.raises(redis.exceptions.NoPermissionError):
            low.lock(key, timeout=20, lock_class=rlock.Lock).acquire()

        async def tasks():
            async with redis.asyncio.Redis(port=own_server.port) as client:
                lock = client.lock(key, timeout=20, lock_class=rlock.asyncio.Lock)
                with pytest.raises(redis.exceptions.LockError, match="UTF-8"):
                    await lock.acquire(token=b"\xff")
                await lock.acquire()
                with pytest.raises(redis.exceptions.LockError, match="release"):
                    await lock.extend(0, replace_ttl=True)
                await lock.release()

        asyncio.run(tasks())
        lock = client.lock(key, timeout=20, lock_class=rlock.Lock)
        own_server.kill()
        with pytest.raises(redis.exceptions.ConnectionError):
            lock.acquire(blocking=False)
        own_server.start()

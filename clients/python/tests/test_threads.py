"""The face for threads."""

import math
import sys
import threading
import time
from datetime import timedelta

import pytest
import redis
from servers import InThread, until

import rlock


def test_a_hold(server, locks, key):
    with locks.hold(key, lease=timedelta(seconds=30)) as hold:
        holder = server.info(key)[b"holders"][0]
        assert holder[b"token"] == hold.token and holder[b"owner"].decode() == hold.owner
        assert holder[b"watchdog"] and 20_000 < holder[b"remaining-ms"] <= 30_000
        assert not hold.lost.is_set() and hold.lost.reason is None
    assert server.is_free(key)
    hold.release()  # a second one does nothing


def test_taken(locks, key):
    with locks.hold(key):
        with pytest.raises(rlock.NotAcquired):
            locks.acquire(key)
        began = time.monotonic()
        with pytest.raises(rlock.NotAcquired):
            locks.acquire(key, wait=0.3)
        assert 0.3 <= time.monotonic() - began < 20


def test_waits_in_order(server, locks, key):
    hold, order = locks.acquire(key), []

    def take(name):
        with locks.hold(key, wait=math.inf):
            order.append(name)

    threads = []
    for name in range(5):
        threads.append(InThread(lambda name=name: take(name)))
        assert until(lambda: server.waiters(key) == len(threads))
    hold.release()
    for thread in threads:
        thread.result()
    assert order == list(range(5))


@pytest.mark.parametrize("kind", [rlock.Cancel, threading.Event])
def test_cancel_reaches_the_server(server, locks, key, kind):
    server.say(f"RLOCK.ACQUIRE {key} other 60000")
    cancel = kind()
    waits = InThread(lambda: locks.acquire(key, wait=60, cancel=cancel))
    assert until(lambda: server.waiters(key) == 1)
    cancel.set()
    with pytest.raises(rlock.Cancelled):
        waits.result()
    assert until(lambda: server.waiters(key) == 0)


def test_cancel_and_grant_cross(server, locks, key):
    for _ in range(100):
        server.say(f"RLOCK.ACQUIRE {key} other 60000")
        cancel = rlock.Cancel()
        waits = InThread(lambda cancel=cancel: locks.acquire(key, wait=60, cancel=cancel))
        assert until(lambda: server.waiters(key) == 1)
        freed = InThread(lambda: server.say(f"RLOCK.RELEASE {key} other"))
        cancel.set()
        try:
            waits.result().release()
        except rlock.Cancelled:
            pass
        freed.result()
        assert until(lambda: server.is_free(key))


def test_loss_is_notified(server, locks, key):
    reasons = []
    with pytest.raises(rlock.Lost) as caught, locks.hold(key) as hold:
        hold.lost.add_callback(reasons.append)
        server.say(f"RLOCK.FORCE {key}")
        assert hold.lost.wait(10)
        with pytest.raises(rlock.Lost):
            hold.renew()
    assert caught.value.reason == hold.lost.reason == "forced"
    assert until(lambda: reasons == ["forced"])


def test_the_bodys_own_error_comes_out(server, locks, key):
    with pytest.raises(ZeroDivisionError), locks.hold(key) as hold:
        server.say(f"RLOCK.FORCE {key}")
        hold.lost.wait(10)
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), locks.hold(key):
        raise ZeroDivisionError
    assert server.is_free(key)


def test_plain_lease(server, locks, key):
    hold = locks.acquire(key, watchdog=False, lease=6)
    hold.renew(lease=4)
    assert hold.lost.wait(20) and hold.lost.reason in ("lease", "expired")
    with pytest.raises(rlock.Lost):
        hold.release()


def test_plain_lease_after_a_wait(server, locks, key):
    server.say(f"RLOCK.ACQUIRE {key} other 60000")
    waits = InThread(lambda: locks.acquire(key, watchdog=False, lease=30, wait=20))
    assert until(lambda: server.waiters(key) == 1)
    server.say(f"RLOCK.RELEASE {key} other")
    hold = waits.result()
    assert server.info(key)[b"holders"][0][b"watchdog"] is None
    hold.release()
    assert server.is_free(key)


def test_max(server, locks, key):
    hold = locks.acquire(key, max=4)
    assert hold.lost.wait(20) and hold.lost.reason == "max"
    assert until(lambda: server.is_free(key))


def test_again(server, locks, key):
    with locks.hold(key) as hold:
        with hold.again() as inner:
            assert inner.token == hold.token
        assert not server.is_free(key)
    assert server.is_free(key)
    with pytest.raises(rlock.Lost):
        hold.again()


def test_read_and_write(locks, key):
    with locks.hold(key, mode="read"), locks.hold(key, mode="read"):
        with pytest.raises(rlock.NotAcquired):
            locks.acquire(key, mode="write")
    locks.acquire(key, mode="write").release()


def test_permits(server, locks, key):
    with locks.hold(key, limit=3, permits=2):
        with locks.hold(key, limit=3), pytest.raises(rlock.NotAcquired):
            locks.acquire(key, limit=3)
        with pytest.raises(rlock.Refused) as caught:
            locks.acquire(key, limit=4)
        assert caught.value.code == "WRONGLIMIT"
    assert server.is_free(key)


def test_many_keys(server, locks, key):
    one, two = f"{key}:1", f"{key}:2"
    with locks.hold([one, two]) as hold:
        assert len(hold.keys) == 2
        with pytest.raises(rlock.NotAcquired):
            locks.acquire(two)
        server.say(f"RLOCK.FORCE {one}")
        assert hold.lost.wait(10)
        with pytest.raises(rlock.Lost):
            hold.release()
        assert until(lambda: server.is_free(two))


def test_many_keys_of_which_one_was_lost_are_forgotten(server, locks, key):
    """Nobody has the rest, so nobody would ever release it."""
    one, two = f"{key}:1", f"{key}:2"
    hold = locks.acquire([one, two])
    server.say(f"RLOCK.FORCE {one}")
    assert hold.lost.wait(20) and not server.is_free(two)
    del hold
    assert until(lambda: server.is_free(two))


def test_a_wait_as_long_as_can_be(server, locks, key):
    other = locks.acquire(f"{key}:other")
    with locks.hold(key):
        waits = InThread(lambda: locks.acquire(key, wait=sys.float_info.max))
        assert until(lambda: server.waiters(key) == 1)
    waits.result().release()
    assert other.lost.reason is None
    other.release()


@pytest.mark.parametrize("cancel", [1, "x", threading.Event])
def test_what_calls_off_is_looked_at_first(server, locks, key, cancel):
    with pytest.raises(TypeError, match="cancel"):
        locks.acquire(key, wait=1, cancel=cancel)
    assert server.is_free(key)


def test_deadlock(server, locks, key):
    one, two = f"{key}:1", f"{key}:2"
    ann, bob = locks.job(), locks.job()
    first, second = ann.acquire(one), bob.acquire(two)
    waits = InThread(lambda: ann.acquire(two, wait=20))
    assert until(lambda: server.waiters(two) == 1)
    with pytest.raises(rlock.Deadlock, match="waits for"):
        bob.acquire(one, wait=20)
    second.release()
    waits.result().release()
    first.release()


def test_a_job_holds_a_key_once(locks, key):
    job = locks.job()
    with job.hold(key) as hold:
        assert hold.owner == job.owner
        with pytest.raises(rlock.HeldByJob):
            job.acquire(key)
        with pytest.raises(rlock.HeldByJob):
            job.acquire([f"{key}:2", key])
        job.acquire(f"{key}:2").release()
    with job.hold(key):
        pass


@pytest.mark.parametrize("how", ["released", "forgotten"])
def test_a_job_has_one_of_many_keys_anew(server, locks, key, how):
    """The end of the hold that was lost leaves alone what the job holds since, by the same owner."""
    names, job = [f"{key}:{number}" for number in range(3)], locks.job()
    lost = job.acquire(names)
    server.say(f"RLOCK.FORCE {names[0]}")
    assert lost.lost.wait(20)
    anew = job.acquire(names[1], wait=10)
    if how == "released":
        with pytest.raises(rlock.Lost):
            lost.release()
    del lost
    assert until(lambda: server.is_free(names[2]))
    assert not server.is_free(names[1]) and anew.lost.reason is None
    anew.release()
    assert server.is_free(names[1])


def test_a_job_may_ask_again_after_it_gave_up(server, locks, key):
    server.say(f"RLOCK.ACQUIRE {key} other 60000")
    job, cancel = locks.job(), rlock.Cancel()
    for _ in range(50):
        cancel.clear()
        waits = InThread(lambda: job.acquire(key, wait=20, cancel=cancel))
        cancel.set()
        with pytest.raises(rlock.Cancelled):
            waits.result()
    waits = InThread(lambda: job.acquire(key, wait=20))
    assert until(lambda: server.waiters(key) == 1)
    server.say(f"RLOCK.RELEASE {key} other")
    waits.result().release()
    assert server.is_free(key)


def test_refused(server, locks, key):
    server.say(f"SET {key} text")
    with pytest.raises(rlock.Refused) as caught:
        locks.acquire(key)
    assert caught.value.code == "WRONGTYPE"


def test_close(server, key):
    locks = rlock.Locks(redis.Redis(port=server.port))
    hold = locks.acquire(key, watchdog=False, lease=60)
    waits = InThread(lambda: locks.acquire(key, wait=60))
    assert until(lambda: server.waiters(key) == 1)
    locks.close()
    assert hold.lost.reason == "closed" and server.is_free(key)
    with pytest.raises(rlock.ConnectionError):
        waits.result()
    with pytest.raises(rlock.ConnectionError):
        locks.acquire(key)
    with pytest.raises(rlock.Lost):
        hold.renew()
    with pytest.raises(rlock.Lost):
        hold.release()
    hold.release()
    locks.close()


def test_forgotten_locks_close(server, key):
    locks = rlock.Locks(redis.Redis(port=server.port))
    hold = locks.acquire(key)
    del locks, hold
    assert until(lambda: server.is_free(key))


def test_credentials_and_database(server, key):
    server.say("ACL SETUSER ann on >secret ~* &* +@all")
    client = redis.Redis(port=server.port, username="ann", password="secret", db=3, protocol=2, decode_responses=True)
    with rlock.Locks(client) as locks, locks.hold(key):
        assert server.is_free(key)  # in database 0
        assert client.exists(key) == 1
    wrong = redis.Redis(port=server.port, username="ann", password="wrong")
    with rlock.Locks(wrong) as locks, pytest.raises(rlock.Refused) as caught:
        locks.acquire(key, wait=60)
    assert caught.value.code == "WRONGPASS"

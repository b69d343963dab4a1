"""How a session waits for locks of a server that has not the module: by tries, in a line, with a place in the queue."""

import math
import time

import pytest
import redis
from plain import server  # noqa: F401
from servers import InThread, until

import rlock
import rlock._lines


@pytest.fixture(autouse=True)
def tries_are_rare(monkeypatch):
    """Of who has a place: what comes by a message comes long before the next try, and no place runs out, also on a slow machine."""
    monkeypatch.setattr(rlock._lines, "KEPT", 60_000)
    monkeypatch.setattr(rlock._lines, "PAUSE_IN_PLACE", 25.0)


def test_waits_stand_in_one_line(server, face, key):
    """A hand-over wakes one, and nothing is left."""
    server.call("acquire", key, "other", 60_000)
    locks = face(server.port)
    got = []

    def work():
        hold = locks.acquire(key, wait=20)
        got.append(hold.token)
        locks.release(hold)

    works = [InThread(work) for _ in range(20)]
    assert until(lambda: server.places(key) == 1)
    server.say("CONFIG RESETSTAT")
    server.call("release", key, "other")
    for one in works:
        one.result()
    assert len(got) == 20 and got == sorted(got)
    calls = server.admin.info("commandstats")
    assert sum(calls.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("fcall", "evalsha")) <= 90
    assert until(lambda: server.places(key) == 0)


def test_a_wait_that_ends_gives_its_place_up(server, face, key):
    server.call("acquire", key, "other", 60_000)
    locks = face(server.port)
    began = time.monotonic()
    with pytest.raises(rlock.NotAcquired):
        locks.acquire(key, wait=0.5)
    assert 0.5 <= time.monotonic() - began < 10
    assert until(lambda: server.places(key) == 0)
    cancel = rlock.Cancel()
    with rlock.Locks(redis.Redis(port=server.port)) as threads:
        waits = InThread(lambda: threads.acquire(key, wait=math.inf, cancel=cancel))
        assert until(lambda: server.places(key) == 1)
        cancel.set()
        with pytest.raises(rlock.Cancelled):
            waits.result()
        assert until(lambda: server.places(key) == 0)
    server.call("release", key, "other")


def test_a_place_that_is_taken_while_its_wait_is_cancelled(server, key):
    """What cancels it is sent behind the try that takes it."""
    server.call("acquire", key, "other", 60_000)
    with rlock.Locks(redis.Redis(port=server.port)) as locks:
        for n in range(30):
            cancel = rlock.Cancel()
            waits = InThread(lambda cancel=cancel: locks.acquire(key, wait=math.inf, cancel=cancel))
            time.sleep(0.095 + n * 0.0005)
            cancel.set()
            with pytest.raises(rlock.Cancelled):
                waits.result()
            assert until(lambda: server.places(key) == 0)
    server.call("release", key, "other")


def test_a_place_outlives_the_connection(server, face, key):
    """Who waits does not stand behind a place that it left itself."""
    server.call("acquire", key, "other", 60_000)
    locks = face(server.port)
    waits = InThread(lambda: locks.acquire(key, wait=30))
    assert until(lambda: server.places(key) == 1)
    queue = f"rlock1_queue:{{{key}}}"
    before = server.admin.zrange(queue, 0, -1)
    for _ in range(3):
        connections = server.admin.client_list(_type="pubsub")
        for one in connections:
            server.admin.client_kill(one["addr"])
        assert until(lambda: {one["id"] for one in server.admin.client_list(_type="pubsub")} - {one["id"] for one in connections})
    time.sleep(0.2)
    assert server.admin.zrange(queue, 0, -1) == before
    began = time.monotonic()
    server.call("release", key, "other")
    locks.release(waits.result())
    assert time.monotonic() - began < 10


def test_a_lease_that_ends_without_a_message(server, face, key):
    server.call("acquire", key, "other", 500)
    locks, began = face(server.port), time.monotonic()
    locks.release(locks.acquire(key, wait=10))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("ask", [{"mode": "write"}, {"limit": 1}, {}])
def test_a_hand_over_is_soon(server, face, key, ask):
    locks, other = face(server.port), face(server.port)
    for seconds in (0.03, 0.4):
        hold = locks.acquire(key, **ask)
        waits = InThread(lambda: other.acquire(key, wait=10, **ask))
        time.sleep(seconds)
        began = time.monotonic()
        locks.release(hold)
        got = waits.result()
        assert time.monotonic() - began < 10
        other.release(got)

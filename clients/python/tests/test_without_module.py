"""Servers that have not the module: by the function library, and by the script. More of it: clients/conformance."""

import importlib.resources
import logging
import math
import pathlib
import threading
import time

import pytest
import redis
import redis.asyncio
from cluster import Cluster
from plain import Plain, plain, server  # noqa: F401
from servers import InThread, Proxy, Server, until

import rlock
import rlock._backend
import rlock._lines
import rlock._loop

LIBRARY = pathlib.Path(__file__).parents[3] / "lua-compat/rlock.lua"


def test_the_package_has_the_library():
    assert importlib.resources.files("rlock").joinpath("rlock.lua").read_bytes() == LIBRARY.read_bytes()


@pytest.mark.parametrize(
    "key, beside",
    [
        (b"jobs", [b"p:{jobs}"]),
        (b"{a}:1", [b"p:{a}:1"]),
        (b"x{a}", [b"p:x{a}"]),
        (b"a{b", []),
        (b"{}", []),
        (b"a}b", []),
        (b"{}{a}", []),
    ],
)
def test_what_is_declared_beside_a_lock(key, beside):
    assert rlock._backend._beside(key, [b"p"]) == beside


def test_a_command_as_a_call():
    words = ("RLOCK.RENEW", b"k", "NOTIFY", 10, "READ", "NOTIFY", "channel", 7, "WATCHDOG")
    assert rlock._backend.said(words, "module", False) is words
    assert rlock._backend.said(words, "functions", False) == ("FCALL", "rlock1_renew", 1, b"k", "NOTIFY", 10, "READ")
    called = rlock._backend.said(("RLOCK.MRELEASE", 2, b"{a}1", b"{a}2", "me"), "script", True)
    assert called[0] == "EVALSHA" and called[2] == 6 and called[-3:] == ("CLUSTER", "rlock1_mrelease", "me")


def test_all_kinds(server, face, key):
    locks = face(server.port)
    assert locks.locks.backend is None
    asks = [{}, {"mode": "read"}, {"mode": "write"}, {"limit": 2, "permits": 2}, {"watchdog": False}]
    for wait in (None, 5):
        tokens = []
        for ask in asks:
            hold = locks.acquire(key, wait=wait, **ask)
            tokens.append(hold.token)
            locks.renew(hold, 20)
            assert 0 < server.holders(key)[0][b"remaining-ms"] <= 20_000
            with pytest.raises(rlock.NotAcquired):
                locks.acquire(key, **({**ask, "mode": "write"} if "mode" in ask else ask))
            locks.release(hold)
            assert server.is_free(key)
        hold = locks.acquire([key, f"{key}:2"], wait=wait)
        locks.release(hold)
        assert tokens == sorted(tokens) and server.is_free(f"{key}:2")
    assert locks.locks.backend == server.backend


def test_what_is_not_to_be_had_is_said_once(server, face, key, caplog, monkeypatch):
    monkeypatch.setattr(rlock._loop, "_said", set())
    with caplog.at_level(logging.WARNING, "rlock"):
        for _ in range(2):
            locks = face(server.port)
            locks.release(locks.acquire(key))
        assert until(lambda: caplog.records)
        time.sleep(0.1)
    (record,) = caplog.records
    assert server.backend in record.message and "watchdog" in record.message


def test_the_module_is_required(server, face, key):
    locks, began = face(server.port, backend="module"), time.monotonic()
    for wait in (None, math.inf):
        with pytest.raises(rlock.Refused, match="no rlock module: load librlock.so .loadmodule., see the README") as caught:
            locks.acquire(key, wait=wait)
        assert caught.value.code == "ERR"
    quorum = face([server.port], backend="module")
    with pytest.raises(rlock.Refused, match="no rlock module"):
        quorum.acquire(key, wait=5)
    assert time.monotonic() - began < 20
    for made in (rlock.Locks, rlock.asyncio.Locks):
        with pytest.raises(ValueError, match="backend"):
            made(redis.Redis() if made is rlock.Locks else redis.asyncio.Redis(), backend="functions")


@pytest.mark.parametrize("many", [False, True])
def test_the_lease_is_renewed(server, face, key, many):
    locks = face(server.port)
    keys = [key, f"{key}:2"] if many else [key]
    hold = locks.acquire(keys, lease=6)
    end = time.monotonic() + 8
    while time.monotonic() < end:
        assert all(server.admin.pttl(one) > 0 for one in keys)
        time.sleep(0.02)
    assert locks.reason(hold) is None
    locks.release(hold)
    assert not server.admin.exists(*keys)


def test_a_shorter_lease_is_renewed_sooner(server, face, key):
    locks = face(server.port)
    hold = locks.acquire(key, lease=30)
    locks.renew(hold, 6)
    end = time.monotonic() + 8
    while time.monotonic() < end:
        assert 0 < server.admin.pttl(key) <= 6000
        time.sleep(0.02)
    locks.renew(hold, 30)
    assert until(lambda: server.admin.pttl(key) > 25_000)
    assert locks.reason(hold) is None
    locks.release(hold)


def test_the_holds_of_a_lease_are_renewed_together(server, face, key):
    """In one pipeline, at four moments of a third at most."""
    locks = face(server.port)
    holds = []
    for n in range(20):
        holds.append(locks.acquire(f"{key}:{n}", lease=6))
        time.sleep(0.02)
    time.sleep(2)
    with server.admin.pipeline(transaction=True) as together:  # by one look at the server's clock
        for n in range(20):
            together.pttl(f"{key}:{n}")
        ends = sorted(together.execute())
    assert sum(later - sooner > 50 for sooner, later in zip(ends, ends[1:])) <= 4
    for hold in holds:
        locks.release(hold)


def test_of_several_the_loss_of_one_is_the_loss_of_all(server, face, key):
    locks, keys = face(server.port), [key, f"{key}:2"]
    for end in ("DEL {}", "SET {} x"):
        hold = locks.acquire(keys, lease=6)
        server.say(end.format(key))
        reason = "deleted" if end.startswith("DEL") else "overwritten"
        assert until(lambda: locks.reason(hold) == reason)
        assert until(lambda: server.is_free(keys[1]))
        with pytest.raises(rlock.Lost):
            locks.release(hold)
    server.say(f"DEL {key}")


def test_a_release_says_that_it_was_lost(server, face, key):
    locks = face(server.port)
    for keys in ([key], [key, f"{key}:2"]):
        hold = locks.acquire(keys)
        server.say(f"DEL {key}")
        with pytest.raises(rlock.Lost, match="deleted"):
            locks.release(hold)
        assert server.is_free(f"{key}:2")


def test_a_hold_outlives_its_connection(server, face, key):
    proxy = Proxy(server.port)
    locks = face(proxy.port)
    hold = locks.acquire(key, lease=8)
    for _ in range(20):
        proxy.cut()
        time.sleep(0.5)
    assert locks.reason(hold) is None and server.admin.pttl(key) > 0
    locks.release(hold)
    assert server.is_free(key)
    proxy.close()


def test_a_server_that_stands_still(plain, face, key):
    locks = face(plain.port, timeout=3)
    hold, other = locks.acquire(key, lease=3), locks.acquire("long", lease=20)
    plain.stop()
    assert until(lambda: locks.reason(hold) == "lease")
    assert locks.reason(other) is None
    plain.go_on()
    assert until(lambda: plain.admin.pttl("long") > 15_000)
    with pytest.raises(rlock.Lost, match="lease"):
        locks.release(hold)
    locks.release(other)


def test_what_was_loaded_is_flushed(server, face, key):
    locks = face(server.port)
    hold = locks.acquire(f"{key}:kept", lease=6)

    def work(number):
        while not over.is_set():
            locks.release(locks.acquire(key, wait=20))
            done[number] += 1

    done, over = [0] * 8, threading.Event()
    works = [InThread(lambda number=number: work(number)) for number in range(8)]
    end = time.monotonic() + 8
    while time.monotonic() < end or (not all(done) and time.monotonic() < end + 20):
        for words in server.flushes:
            server.say(words)
        time.sleep(0.02)
    over.set()
    for one in works:
        one.result()
    assert all(done)
    assert locks.reason(hold) is None
    locks.release(hold)


def test_acks(plain, face, key, tmp_path):
    directory = tmp_path / "replica"
    directory.mkdir()
    replica = Plain(directory)
    try:
        locks = face(plain.port)
        with pytest.raises(rlock.Refused, match="0 of 1 replicas"):
            locks.acquire(key, acks=1, acks_time=0.3)
        replica.say(f"REPLICAOF 127.0.0.1 {plain.port}")
        hold = locks.acquire(key, wait=20, acks=1, acks_time=30)
        for words in plain.flushes:
            plain.say(words)
        assert replica.admin.exists(key)
        again = locks.acquire(f"{key}:2", acks=1, acks_time=30)
        locks.release(again)
        locks.release(hold)
    finally:
        replica.kill()


def test_a_quorum(tmp_path, face, key):
    servers = []
    for n, backend in enumerate(("functions", "script", "functions")):
        (tmp_path / str(n)).mkdir()
        servers.append(Plain(tmp_path / str(n), backend=backend))
    try:
        quorum = face([server.port for server in servers])
        hold = quorum.acquire(key, lease=6)
        waits = InThread(lambda: quorum.acquire(key, wait=30, lease=6))
        assert until(lambda: servers[0].places(key) == 1)
        servers[2].kill()
        time.sleep(8)
        assert quorum.reason(hold) is None
        quorum.release(hold)
        other = waits.result()
        assert other.token > hold.token
        quorum.release(other)
        assert until(lambda: servers[0].is_free(key) and servers[1].is_free(key))
    finally:
        for server in servers:
            server.kill()


def test_a_node_of_a_cluster(tmp_path, face, monkeypatch):
    monkeypatch.setattr(Server, "words", ())
    # So that a hand-over is by a message, and long before the next try.
    monkeypatch.setattr(rlock._lines, "KEPT", 60_000)
    monkeypatch.setattr(rlock._lines, "PAUSE_IN_PLACE", 25.0)
    cluster = Cluster(tmp_path)
    try:
        alone = face(cluster.masters[0].port)
        for number in (0, 1):
            with pytest.raises(rlock.Refused, match="give Locks a RedisCluster") as caught:
                alone.acquire(cluster.key_at(number), wait=30)
            assert caught.value.code == "MOVED"
        locks = face(cluster.masters[0].port, cluster=True)
        for number in range(3):
            key = cluster.key_at(number)
            hold = locks.acquire(key, lease=10)
            waits = InThread(lambda key=key: locks.acquire(key, wait=20, mode=None))
            time.sleep(0.3)
            began = time.monotonic()
            locks.release(hold)
            locks.release(waits.result())
            assert time.monotonic() - began < 10
        assert locks.locks.backend == "functions"
    finally:
        cluster.kill()


def test_a_drop_in_for_redis_py(server, key):
    with redis.Redis(port=server.port) as client:
        lock = client.lock(key, timeout=20, lock_class=rlock.Lock)
        assert not lock.locked()
        with lock:
            assert lock.locked() and lock.owned() and lock.extend(5)
            other = client.lock(key, timeout=20, lock_class=rlock.Lock)
            assert not other.acquire(blocking=False) and not other.owned()
            there = client.lock(key, timeout=20, lock_class=rlock.Lock, thread_local=False)
            there.local.token = lock.local.token
            assert there.reacquire() and there.owned()
        assert not lock.locked()
    with redis.Redis(port=server.port) as client:  # one that has asked for nothing yet
        for words in server.flushes:
            server.say(words)
        assert not client.lock(key, lock_class=rlock.Lock).locked()

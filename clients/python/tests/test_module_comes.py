"""The module is loaded, and unloaded, while programs run; and the rights that a user needs with it and without it."""

import math
import os
import pathlib
import time

import pytest
import redis
from plain import LOAD, plain  # noqa: F401
from servers import InThread, Server, until

import rlock
import rlock._protocol


def test_a_user_of_little_rights(plain, face, key):
    plain.say("ACL SETUSER low on >x ~* &* +@all -@scripting")
    opened = []
    for wait in (None, math.inf):
        locks = face(plain.port, user="low")
        with pytest.raises(rlock.Refused, match="no rlock module.*FUNCTION LOAD") as caught:
            locks.acquire(key, wait=wait)
        assert caught.value.code == "NOPERM"
        opened.append(locks)
    plain.say("ACL SETUSER low +fcall +fcall_ro +function|load")
    hold = opened[0].acquire(key, wait=20)
    assert opened[0].locks.backend == "functions"
    # What the library may not do, the user may not: here to listen to a lock's channel.
    plain.say("ACL SETUSER low resetchannels &rlock:*")
    other = face(plain.port, user="low")
    with pytest.raises(rlock.Refused) as caught:
        other.acquire(key, wait=math.inf)
    assert caught.value.code == "NOPERM"
    plain.say("ACL SETUSER low &* -time")
    with pytest.raises(rlock.Refused) as caught:
        opened[0].acquire("more", wait=math.inf)
    assert caught.value.code == "NOPERM"
    plain.say("ACL SETUSER low +time")
    opened[0].release(hold)


def test_the_rights_of_the_readme(plain, face, key):
    readme = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    line = next(line for line in readme.splitlines() if line.startswith("ACL SETUSER worker"))
    plain.say(line.replace(">secret", ">x"))
    plain.call("acquire", "lock:a", "other", 60_000)
    locks = face(plain.port, user="worker")
    for ask in ({}, {"mode": "read"}, {"limit": 2}):
        locks.release(locks.acquire("lock:b", wait=20, **ask))
    waits = InThread(lambda: locks.acquire("lock:a", wait=20, lease=6))
    assert until(lambda: plain.places("lock:a") == 1)
    plain.call("release", "lock:a", "other")
    hold = waits.result()
    time.sleep(8)
    assert locks.locks.backend == "functions"
    locks.release(hold)


def test_the_module_comes(plain, face, key, monkeypatch):
    monkeypatch.setattr(rlock._protocol, "FIND", 0.2)
    plain.call("acquire", "taken", "other", 60_000)
    locks = face(plain.port)
    asks = {"kept": {"lease": 6}, "plain": {"watchdog": False}, "read": {"mode": "read", "lease": 6}}
    holds = {name: locks.acquire(f"{key}:{name}", **ask) for name, ask in asks.items()}
    several = locks.acquire([f"{key}:1", f"{key}:2"], lease=6)
    waits = InThread(lambda: locks.acquire("taken", wait=30))
    assert until(lambda: plain.places("taken") == 1)
    plain.say(f"MODULE LOAD {os.environ['RLOCK_MODULE']}")
    assert until(lambda: locks.locks.backend == "module")
    assert until(lambda: Server.info(plain, f"{key}:kept")[b"holders"][0][b"watchdog"])
    assert until(lambda: plain.waiters("taken") == 1)
    plain.say("RLOCK.FORCE taken")
    locks.release(waits.result())
    time.sleep(8)
    assert [locks.reason(hold) for hold in [*holds.values(), several]] == [None] * 4
    assert all(plain.admin.pttl(f"{key}:{n}") > 0 for n in (1, 2))
    for hold in holds.values():
        locks.release(hold)
    plain.say(f"RLOCK.FORCE {key}:1")
    assert until(lambda: locks.reason(several) == "forced")


def test_the_module_comes_while_acks_are_awaited(plain, face, key, tmp_path, monkeypatch):
    monkeypatch.setattr(rlock._protocol, "FIND", 0.2)
    directory = tmp_path / "replica"
    directory.mkdir()
    replica = Server(directory)
    try:
        locks = face(plain.port)
        waits = InThread(lambda: locks.acquire(key, wait=20, lease=6, acks=1, acks_time=50))
        assert until(lambda: plain.admin.exists(key))
        plain.say(f"MODULE LOAD {os.environ['RLOCK_MODULE']}")
        assert until(lambda: locks.locks.backend == "module")
        replica.say(f"REPLICAOF 127.0.0.1 {plain.port}")
        hold = waits.result(60)
        assert replica.admin.exists(key) and locks.reason(hold) is None
        locks.release(hold)
    finally:
        replica.kill()


def test_the_module_goes(tmp_path, face, key):
    """It does so only where nobody has anything of it."""
    server = Server(tmp_path, *LOAD)
    try:
        locks = face(server.port)
        hold = locks.acquire(key, lease=3)
        with pytest.raises(redis.ResponseError):
            server.say("MODULE UNLOAD rlock")
        locks.release(hold)
        server.say("CONFIG SET rlock.recovery-scan no")

        def goes():
            try:
                return server.say("MODULE UNLOAD rlock")
            except redis.ResponseError:
                return None

        assert until(goes)
        assert locks.locks.backend == "module"  # nobody has said otherwise
        hold = locks.acquire(key, wait=20, lease=6)
        assert locks.locks.backend == "functions"
        time.sleep(8)
        assert locks.reason(hold) is None and server.admin.pttl(key) > 0
        locks.release(hold)
    finally:
        server.kill()


PAGE = (pathlib.Path(__file__).parents[3] / "docs/how-to/without-module.md").read_text()


def worker(plain):
    """A user with the rights of the README; and what more it needs with the module, by the page on that."""
    readme = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    plain.say(next(line for line in readme.splitlines() if line.startswith("ACL SETUSER worker")).replace(">secret", ">x"))
    load, rights = PAGE.partition("\nMULTI\n")[2].partition("\nEXEC\n")[0].splitlines()
    return ["MODULE", "LOAD", os.environ["RLOCK_MODULE"]], rights.split() if load.startswith("MODULE LOAD ") else None


def hold_and_wait(plain, face):
    plain.call("acquire", "lock:taken", "other", 60_000)
    locks = face(plain.port, user="worker")
    holds = {
        "lock:kept": locks.acquire("lock:kept", lease=5),
        "lock:read": locks.acquire("lock:read", lease=5, mode="read"),
        "lock:1": locks.acquire(["lock:1", "lock:2"], lease=5),
    }
    waits = InThread(lambda: locks.acquire("lock:taken", wait=30))
    assert until(lambda: plain.places("lock:taken") == 1)
    return locks, holds, waits


def outlive_their_leases(plain, locks, holds):
    end = time.monotonic() + 6
    while time.monotonic() < end:
        assert all(plain.admin.pttl(key) > 0 for key in holds)
        time.sleep(0.05)
    assert [locks.reason(hold) for hold in holds.values()] == [None] * 3
    for hold in holds.values():
        locks.release(hold)
    assert not plain.admin.exists(*holds)


def test_the_module_comes_with_the_rights_for_it(plain, face, monkeypatch):
    monkeypatch.setattr(rlock._protocol, "FIND", 0.2)
    load, rights = worker(plain)
    locks, holds, waits = hold_and_wait(plain, face)
    with plain.admin.pipeline(transaction=True) as both:
        both.execute_command(*load)
        both.execute_command(*rights)
        assert both.execute() == [b"OK", b"OK"]
    assert until(lambda: locks.locks.backend == "module")
    assert until(lambda: plain.waiters("lock:taken") == 1)
    plain.say("RLOCK.FORCE lock:taken")
    locks.release(waits.result())
    outlive_their_leases(plain, locks, holds)


def test_the_module_comes_before_the_rights_for_it(plain, face, monkeypatch):
    monkeypatch.setattr(rlock._protocol, "FIND", 0.2)
    load, rights = worker(plain)
    locks, holds, waits = hold_and_wait(plain, face)
    plain.admin.execute_command(*load)
    with pytest.raises(rlock.Refused) as caught:
        waits.result()
    assert caught.value.code == "NOPERM"
    plain.admin.execute_command(*rights)
    outlive_their_leases(plain, locks, holds)

"""Servers that have not the module: by the function library, and by the script. More of it: clients/conformance."""

import contextlib
import importlib.resources
import logging
import math
import os
import pathlib
import time

import pytest
import redis
import redis.asyncio
from cluster import Cluster
from faces import Tasks, Threads
from servers import InThread, Proxy, Server, until

import rlock
import rlock._backend
import rlock._loop
import rlock._protocol

LOAD = ("--enable-module-command", "yes")
LIBRARY = pathlib.Path(__file__).parents[3] / "lua-compat/rlock.lua"


class Plain(Server):
    words = ()

    def __init__(self, directory, *config, backend="functions"):
        super().__init__(directory, *config)
        self.backend = backend
        if backend == "script":
            with contextlib.suppress(redis.ResponseError):  # Redis 6.2 has none
                self.say("ACL SETUSER default -fcall -fcall_ro")
        text = rlock._backend.script()[0]
        self.admin.script_load(text)  # the runner's own way, whoever has the functions
        self.flushes = ["FUNCTION FLUSH", "SCRIPT FLUSH"] if backend == "functions" else ["SCRIPT FLUSH"]

    def call(self, verb, key, *words):
        return self.admin.eval(rlock._backend.script()[0], 1, key, f"rlock1_{verb}", *words)

    def holders(self, key):
        return self.call("info", key)[b"holders"]

    def is_free(self, key):
        return self.call("info", key)[b"mode"] == b"free"

    def places(self, key):
        return self.admin.zcard(f"rlock1_queue:{{{key}}}")


@pytest.fixture(scope="module", params=["functions", "script"])
def server(request, tmp_path_factory):
    server = Plain(tmp_path_factory.mktemp("server"), backend=request.param)
    yield server
    server.kill()


@pytest.fixture
def plain(tmp_path):
    server = Plain(tmp_path, *LOAD)
    yield server
    server.go_on()
    server.kill()


@pytest.fixture(params=[Threads, Tasks])
def face(request):
    opened = []

    def open_(port, **options):
        opened.append(request.param(port, **options))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


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
            locks.renew(hold, 5)
            assert 0 < server.holders(key)[0][b"remaining-ms"] <= 5000
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
    hold = locks.acquire(keys, lease=0.9)
    end = time.monotonic() + 2.7
    while time.monotonic() < end:
        assert all(server.admin.pttl(one) > 0 for one in keys)
        time.sleep(0.02)
    assert locks.reason(hold) is None
    locks.release(hold)
    assert not server.admin.exists(*keys)


def test_a_shorter_lease_is_renewed_sooner(server, face, key):
    locks = face(server.port)
    hold = locks.acquire(key, lease=30)
    locks.renew(hold, 0.6)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert 0 < server.admin.pttl(key) <= 600
        time.sleep(0.02)
    locks.renew(hold, 30)
    assert until(lambda: server.admin.pttl(key) > 25_000, 2)
    assert locks.reason(hold) is None
    locks.release(hold)


def test_the_holds_of_a_lease_are_renewed_together(server, face, key):
    """In one pipeline, at four moments of a third at most."""
    locks = face(server.port)
    holds = []
    for n in range(20):
        holds.append(locks.acquire(f"{key}:{n}", lease=3))
        time.sleep(0.02)
    time.sleep(1)
    ends = sorted(time.monotonic() * 1000 + server.admin.pttl(f"{key}:{n}") for n in range(20))
    assert sum(later - sooner > 50 for sooner, later in zip(ends, ends[1:])) <= 4
    for hold in holds:
        locks.release(hold)


def test_of_several_the_loss_of_one_is_the_loss_of_all(server, face, key):
    locks, keys = face(server.port), [key, f"{key}:2"]
    for end in ("DEL {}", "SET {} x"):
        hold = locks.acquire(keys, lease=0.9)
        server.say(end.format(key))
        reason = "deleted" if end.startswith("DEL") else "overwritten"
        assert until(lambda: locks.reason(hold) == reason, 3)
        assert until(lambda: server.is_free(keys[1]), 1)
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
    hold = locks.acquire(key, lease=2)
    for _ in range(5):
        proxy.cut()
        time.sleep(0.5)
    assert locks.reason(hold) is None and server.admin.pttl(key) > 0
    locks.release(hold)
    assert server.is_free(key)
    proxy.close()


def test_a_server_that_stands_still(plain, face, key):
    locks = face(plain.port, timeout=1)
    hold, other = locks.acquire(key, lease=1), locks.acquire("long", lease=20)
    plain.stop()
    assert until(lambda: locks.reason(hold) == "lease", 3)
    assert locks.reason(other) is None
    plain.go_on()
    assert until(lambda: plain.admin.pttl("long") > 15_000)
    with pytest.raises(rlock.Lost, match="lease"):
        locks.release(hold)
    locks.release(other)


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
    assert 0.5 <= time.monotonic() - began < 2
    assert until(lambda: server.places(key) == 0, 1)
    cancel = rlock.Cancel()
    with rlock.Locks(redis.Redis(port=server.port)) as threads:
        waits = InThread(lambda: threads.acquire(key, wait=math.inf, cancel=cancel))
        assert until(lambda: server.places(key) == 1)
        cancel.set()
        with pytest.raises(rlock.Cancelled):
            waits.result()
        assert until(lambda: server.places(key) == 0, 1)
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
            assert until(lambda: server.places(key) == 0, 0.4)
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
    assert time.monotonic() - began < 1


def test_a_lease_that_ends_without_a_message(server, face, key):
    server.call("acquire", key, "other", 500)
    locks, began = face(server.port), time.monotonic()
    locks.release(locks.acquire(key, wait=10))
    assert time.monotonic() - began < 2


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
        assert time.monotonic() - began < 0.3
        other.release(got)


def test_what_was_loaded_is_flushed(server, face, key):
    locks = face(server.port)
    hold = locks.acquire(f"{key}:kept", lease=1)

    def work():
        done = 0
        while time.monotonic() < end:
            locks.release(locks.acquire(key, wait=10))
            done += 1
        return done

    end = time.monotonic() + 2
    works = [InThread(work) for _ in range(8)]
    while time.monotonic() < end:
        for words in server.flushes:
            server.say(words)
        time.sleep(0.02)
    assert min(one.result() for one in works) > 0
    assert locks.reason(hold) is None
    locks.release(hold)


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
    hold = opened[0].acquire(key, wait=1)
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
        locks.release(locks.acquire("lock:b", wait=1, **ask))
    waits = InThread(lambda: locks.acquire("lock:a", wait=10, lease=0.5))
    assert until(lambda: plain.places("lock:a") == 1)
    plain.call("release", "lock:a", "other")
    hold = waits.result()
    time.sleep(1)
    assert locks.locks.backend == "functions"
    locks.release(hold)


def test_the_module_comes(plain, face, key, monkeypatch):
    monkeypatch.setattr(rlock._protocol, "FIND", 0.2)
    plain.call("acquire", "taken", "other", 60_000)
    locks = face(plain.port)
    asks = {"kept": {"lease": 1}, "plain": {"watchdog": False}, "read": {"mode": "read", "lease": 1}}
    holds = {name: locks.acquire(f"{key}:{name}", **ask) for name, ask in asks.items()}
    several = locks.acquire([f"{key}:1", f"{key}:2"], lease=1)
    waits = InThread(lambda: locks.acquire("taken", wait=30))
    assert until(lambda: plain.places("taken") == 1)
    plain.say(f"MODULE LOAD {os.environ['RLOCK_MODULE']}")
    assert until(lambda: locks.locks.backend == "module", 5)
    assert until(lambda: Server.info(plain, f"{key}:kept")[b"holders"][0][b"watchdog"], 5)
    assert until(lambda: plain.waiters("taken") == 1, 5)
    plain.say("RLOCK.FORCE taken")
    locks.release(waits.result())
    time.sleep(1.5)
    assert [locks.reason(hold) for hold in [*holds.values(), several]] == [None] * 4
    assert all(plain.admin.pttl(f"{key}:{n}") > 0 for n in (1, 2))
    for hold in holds.values():
        locks.release(hold)
    plain.say(f"RLOCK.FORCE {key}:1")
    assert until(lambda: locks.reason(several) == "forced", 2)


def test_the_module_comes_while_acks_are_awaited(plain, face, key, tmp_path, monkeypatch):
    monkeypatch.setattr(rlock._protocol, "FIND", 0.2)
    directory = tmp_path / "replica"
    directory.mkdir()
    replica = Server(directory)
    try:
        locks = face(plain.port)
        waits = InThread(lambda: locks.acquire(key, wait=1, lease=2, acks=1, acks_time=20))
        assert until(lambda: plain.admin.exists(key))
        plain.say(f"MODULE LOAD {os.environ['RLOCK_MODULE']}")
        assert until(lambda: locks.locks.backend == "module", 5)
        replica.say(f"REPLICAOF 127.0.0.1 {plain.port}")
        hold = waits.result()
        assert replica.admin.exists(key) and locks.reason(hold) is None
        locks.release(hold)
    finally:
        replica.kill()


def test_acks(plain, face, key, tmp_path):
    directory = tmp_path / "replica"
    directory.mkdir()
    replica = Plain(directory)
    try:
        locks = face(plain.port)
        with pytest.raises(rlock.Refused, match="0 of 1 replicas"):
            locks.acquire(key, acks=1, acks_time=0.3)
        replica.say(f"REPLICAOF 127.0.0.1 {plain.port}")
        hold = locks.acquire(key, wait=5, acks=1, acks_time=10)
        for words in plain.flushes:
            plain.say(words)
        assert replica.admin.exists(key)
        again = locks.acquire(f"{key}:2", acks=1, acks_time=10)
        locks.release(again)
        locks.release(hold)
    finally:
        replica.kill()


def test_the_module_goes(tmp_path, face, key):
    """It does so only where nobody has anything of it."""
    server = Server(tmp_path, *LOAD)
    try:
        locks = face(server.port)
        hold = locks.acquire(key, lease=1)
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
        hold = locks.acquire(key, wait=5, lease=0.6)
        assert locks.locks.backend == "functions"
        time.sleep(1.5)
        assert locks.reason(hold) is None and server.admin.pttl(key) > 0
        locks.release(hold)
    finally:
        server.kill()


def test_a_quorum(tmp_path, face, key):
    servers = []
    for n, backend in enumerate(("functions", "script", "functions")):
        (tmp_path / str(n)).mkdir()
        servers.append(Plain(tmp_path / str(n), backend=backend))
    try:
        quorum = face([server.port for server in servers])
        hold = quorum.acquire(key, lease=1)
        waits = InThread(lambda: quorum.acquire(key, wait=10, lease=1))
        assert until(lambda: servers[0].places(key) == 1)
        servers[2].kill()
        time.sleep(1.5)
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
            hold = locks.acquire(key, lease=1)
            waits = InThread(lambda key=key: locks.acquire(key, wait=10, mode=None))
            time.sleep(0.3)
            began = time.monotonic()
            locks.release(hold)
            locks.release(waits.result())
            assert time.monotonic() - began < 0.3
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

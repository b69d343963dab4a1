"""Plain holds over a new connection: asked for there, and their loss is notified from then on."""

import threading
import time

import pytest
from faces import Tasks, Threads
from servers import Server, until

import rlock


@pytest.fixture(params=[Threads, Tasks])
def locks(request, proxy):
    face = request.param(proxy.port)
    yield face
    face.close()


def renewed(server):
    return int(server.admin.info("rlock")["rlock_renewed"])


def take(locks, key, kind, lease=60):
    """A hold of this kind, and its keys in the server."""
    if kind == "many":
        keys = [f"{{{key}}}:1", f"{{{key}}}:2"]
        return locks.acquire(keys, watchdog=False, lease=lease), keys
    options = {"permits": {"limit": 3, "permits": 2}, "read": {"mode": "read"}}.get(kind, {})
    return locks.acquire(key, watchdog=False, lease=lease, **options), [key]


KINDS = pytest.mark.parametrize("kind", ["plain", "many", "permits", "read"])


@KINDS
def test_forced_while_the_connection_was_away(server, proxy, locks, key, kind):
    hold, keys = take(locks, key, kind)
    rest, _ = take(locks, f"{key}:rest", kind)
    proxy.target = 1  # nobody listens there
    proxy.cut()
    server.say(f"RLOCK.FORCE {keys[-1]}")
    assert locks.reason(hold) is None
    proxy.target = server.port
    assert until(lambda: locks.reason(hold) == "expired")
    assert locks.reason(rest) is None
    with pytest.raises(rlock.Lost):
        locks.release(hold)
    assert all(server.is_free(each) for each in keys)
    locks.release(rest)


@KINDS
def test_forced_after_the_reconnect(server, proxy, locks, key, kind):
    hold, keys = take(locks, key, kind)
    before = renewed(server)
    proxy.cut()
    assert until(lambda: renewed(server) > before)
    server.say(f"RLOCK.FORCE {keys[-1]}")
    assert until(lambda: locks.reason(hold) == "forced")
    with pytest.raises(rlock.Lost):
        locks.release(hold)
    assert all(server.is_free(each) for each in keys)


@KINDS
def test_released_after_the_reconnect(server, proxy, locks, key, kind):
    hold, keys = take(locks, key, kind)
    before = renewed(server)
    for times in range(1, 4):
        proxy.cut()
        assert until(lambda times=times: renewed(server) >= before + times * len(keys))
    locks.release(hold)
    assert all(server.is_free(each) for each in keys)


def test_a_release_behind_the_question_hears_its_answer(server, proxy, locks, key):
    hold, _ = take(locks, key, "plain")
    proxy.cut()
    server.say(f"RLOCK.FORCE {key}")
    # Waits until there is a connection: the question was asked on it before this request was.
    locks.release(locks.acquire(f"{key}:other", wait=20))
    with pytest.raises(rlock.Lost):
        locks.release(hold)


def test_the_deadline_stays(server, proxy, locks, key):
    began = time.monotonic()
    hold, _ = take(locks, key, "plain", lease=12)
    taken = time.monotonic()
    before = renewed(server)
    time.sleep(8)  # so that a lease that began anew would be seen
    cut = time.monotonic()
    proxy.cut()
    assert until(lambda: renewed(server) > before)
    asked = time.monotonic()
    left = server.admin.pttl(key) / 1000
    now = time.monotonic()
    # It says how much is left: for so long as that is on its way, the server has it longer.
    assert began + 12 - now - 0.1 < left < taken + 12 - asked + 4
    assert until(lambda: locks.reason(hold)) and began + 11.9 < time.monotonic() < cut + 12
    assert until(lambda: server.is_free(key))


def test_a_renewal_under_way_is_not_undone(server, proxy, locks, key):
    hold, _ = take(locks, key, "plain", lease=20)
    proxy.lose = b"RLOCK.RENEW"
    locks.renew(hold, 60)
    assert server.admin.pttl(key) > 50_000
    proxy.lose = b"RLOCK.RENEW"
    locks.renew(hold, 20)
    assert server.admin.pttl(key) <= 20_000
    locks.release(hold)


@pytest.mark.parametrize("face", [Threads, Tasks])
@pytest.mark.parametrize("kept", [True, False])
def test_a_server_that_starts_again(tmp_path, face, key, kept):
    server = Server(tmp_path, *(["--appendonly", "yes", "--appendfsync", "always"] if kept else []))
    locks = face(server.port)
    plain, keys = take(locks, key, "plain")
    many, more = take(locks, key, "many")
    server.kill()
    server.start()
    if kept:
        assert until(lambda: renewed(server) >= 3)
        locks.release(plain)
        locks.release(many)
        assert all(server.is_free(each) for each in keys + more)
    else:
        assert until(lambda: locks.reason(plain) == locks.reason(many) == "expired")
    locks.close()
    server.kill()


@pytest.mark.parametrize("face", [Threads, Tasks])
def test_a_server_that_grants_nothing_yet(tmp_path, face, key):
    server = Server(tmp_path, "--rlock.grant-after", "600000")
    locks, short = face(server.port, timeout=20), face(server.port, timeout=0.3)
    with pytest.raises(rlock.ConnectionError):
        short.acquire(key)
    with pytest.raises(rlock.ConnectionError):
        short.acquire(key, wait=0.1)
    for wait in (None, 20):
        server.say("CONFIG SET rlock.grant-after 600000")
        later = threading.Timer(0.7, server.say, ["CONFIG SET rlock.grant-after 0"])
        later.start()
        locks.release(locks.acquire(key, wait=wait))
        later.join()
    for one in (locks, short):
        one.close()
    server.kill()

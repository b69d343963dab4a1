"""Connections that break, and servers that stop, while something is under way."""

import time

import pytest
from servers import InThread, Proxy, Server, free_port, until

import rlock


def test_cut_while_holding(server, proxy, face, key):
    locks = face(proxy.port)
    watched, plain = locks.acquire(key), locks.acquire(f"{key}:plain", watchdog=False, lease=60)
    proxy.cut()
    assert until(lambda: locks.reason(watched) == "connection")
    assert until(lambda: server.is_free(key))
    with pytest.raises(rlock.Lost):
        locks.release(watched)
    with pytest.raises(rlock.Lost):
        locks.renew(watched)
    locks.renew(plain)
    assert locks.reason(plain) is None
    locks.release(plain)
    assert until(lambda: server.is_free(f"{key}:plain"))


def test_cut_while_waiting(server, proxy, face, key):
    server.say(f"RLOCK.ACQUIRE {key} other 60000")
    locks = face(proxy.port)
    waits = InThread(lambda: locks.acquire(key, wait=30))
    assert until(lambda: server.waiters(key) == 1)
    client = server.say(f"RLOCK.WAITERS {key}")[0][b"client-id"]
    proxy.cut()

    def again():
        waiters = server.say(f"RLOCK.WAITERS {key}")
        return len(waiters) == 1 and waiters[0][b"client-id"] != client

    assert until(again)
    server.say(f"RLOCK.RELEASE {key} other")
    locks.release(waits.result())
    assert server.is_free(key)


@pytest.mark.parametrize("watchdog", [True, False])
def test_a_lost_reply_to_a_try(server, proxy, face, key, watchdog):
    locks = face(proxy.port)
    locks.acquire(f"{key}:before")
    proxy.lose = key.encode()
    hold = locks.acquire(key, watchdog=watchdog)
    assert proxy.lose is None
    holder = server.info(key)[b"holders"]
    assert [one[b"holds"] for one in holder] == [1] and holder[0][b"token"] == hold.token
    locks.release(hold)
    assert server.is_free(key)


@pytest.mark.parametrize("watchdog", [True, False])
def test_a_lost_reply_to_a_release(server, proxy, face, key, watchdog):
    locks = face(proxy.port)
    hold = locks.acquire(key, watchdog=watchdog)
    proxy.lose = b"RLOCK.RELEASE"
    locks.release(hold)
    assert proxy.lose is None and until(lambda: server.is_free(key))
    locks.release(locks.acquire(key, wait=10))


def test_a_lost_reply_to_a_renewal(server, proxy, face, key):
    locks = face(proxy.port)
    watched, plain = locks.acquire(key), locks.acquire(f"{key}:plain", watchdog=False, lease=60)
    proxy.lose = b"RLOCK.RENEW"
    locks.renew(plain)
    proxy_used = proxy.lose is None
    assert proxy_used and until(lambda: locks.reason(watched) == "connection")
    watched = locks.acquire(key, wait=10)
    proxy.lose = b"RLOCK.RENEW"
    with pytest.raises(rlock.Lost):
        locks.renew(watched)


def test_restart(tmp_path, face, key):
    server = Server(tmp_path)
    locks = face(server.port)
    hold = locks.acquire(key)
    waits = InThread(lambda: locks.acquire("other", wait=30))
    locks.release(waits.result())
    server.say("RLOCK.ACQUIRE taken other 60000")
    waits = InThread(lambda: locks.acquire("taken", wait=30))
    assert until(lambda: server.waiters("taken") == 1)
    server.kill()
    assert until(lambda: locks.reason(hold) == "connection")
    with pytest.raises(rlock.ConnectionError):
        face(server.port, timeout=0.5).acquire(key)
    server.start()
    locks.release(waits.result())  # it forgot who had it
    locks.release(locks.acquire(key))
    server.kill()


def test_no_server(tmp_path, face, key):
    port = free_port()
    locks = face(port, timeout=4)
    began = time.monotonic()
    with pytest.raises(rlock.ConnectionError):
        locks.acquire(key)
    with pytest.raises(rlock.ConnectionError):
        locks.acquire(key, wait=0.1)
    assert 8 <= time.monotonic() - began < 30
    server = Server(tmp_path, port=port)
    locks.release(locks.acquire(key))
    server.kill()


def test_a_stopped_server_is_noticed_within_a_lease(own_server, face, key):
    locks = face(own_server.port)
    hold = locks.acquire(key, lease=5)
    long = locks.acquire(f"{key}:long", lease=60)
    own_server.stop()
    began = time.monotonic()
    assert until(lambda: locks.reason(hold) == "connection")
    assert time.monotonic() - began < 20  # and the others with it
    assert locks.reason(long) == "connection"
    own_server.go_on()
    locks.release(locks.acquire(key, wait=20))
    assert until(lambda: own_server.is_free(f"{key}:long"))


def test_a_try_at_a_stopped_server_ends(own_server, face, key):
    locks = face(own_server.port, timeout=3)
    locks.release(locks.acquire(key))
    own_server.stop()
    began = time.monotonic()
    with pytest.raises(rlock.ConnectionError):
        locks.acquire(key)
    assert time.monotonic() - began < 20
    own_server.go_on()
    locks.release(locks.acquire(key, wait=20))
    assert own_server.is_free(key)


def test_a_silent_network(server, face, key):
    proxy = Proxy(server.port)
    locks = face(proxy.port)
    hold = locks.acquire(key, lease=3)
    proxy.frozen.set()
    assert until(lambda: locks.reason(hold) == "connection")
    proxy.frozen.clear()
    locks.release(locks.acquire(key, wait=20))
    proxy.close()


def test_a_server_that_may_not_write(server, face, key):
    locks = face(server.port)
    hold = locks.acquire(key)
    server.say("CONFIG SET min-replicas-to-write 1")
    try:
        with pytest.raises(rlock.Refused) as caught:
            locks.acquire(f"{key}:other")
        assert caught.value.code == "NOREPLICAS"
        with pytest.raises(rlock.Refused):
            locks.release(hold)
    finally:
        server.say("CONFIG SET min-replicas-to-write 0")
    # The release is retried with the heartbeat: nobody else would free the lock.
    assert until(lambda: server.is_free(key))

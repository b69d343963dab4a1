"""A hold is wanted while somebody waits whom its release would serve."""

import asyncio
import os
import time

import pytest
import redis
import redis.asyncio
from plain import Plain
from servers import InThread, collect, until
from test_fork import in_child

import rlock
import rlock.asyncio


@pytest.fixture
def faced(face, server):
    return face(server.port)


def waits(server, locks, key, waiters=1, **options):
    """Somebody who waits for the lock, until it has it."""
    waiter = InThread(lambda: locks.acquire(key, wait=120, **options))
    assert until(lambda: server.waiters(key) == waiters)
    return waiter


def renewals(server):
    stats = server.admin.info("commandstats")
    return stats.get("cmdstat_rlock.renew", {"calls": 0})["calls"]


def never(condition, seconds=1.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert not condition()
        time.sleep(0.02)


@pytest.mark.parametrize("options", [{}, {"watchdog": False, "lease": 60}, {"limit": 2, "permits": 2}, {"mode": "write"}])
def test_somebody_begins_to_wait(server, faced, locks, key, options):
    hold = faced.acquire(key, **options)
    assert not faced.wanted(hold) and not faced.wait_wanted(hold, 0.2)
    waker = InThread(lambda: faced.wait_wanted(hold, 60))
    other = {name: value for name, value in options.items() if name in ("limit", "mode")}
    waiter = waits(server, locks, key, **other)
    assert waker.result()
    assert until(lambda: faced.wanted(hold)) and faced.wait_wanted(hold, 60)
    faced.release(hold)
    assert not faced.wanted(hold) and not faced.wait_wanted(hold, 60)
    hold = waiter.result()
    assert not hold.wanted.is_set()
    hold.release()


def test_somebody_waits_already(server, faced, locks, key):
    hold = faced.acquire(key, lease=60)
    waiter = waits(server, locks, key)
    assert faced.wait_wanted(hold, 30)
    faced.release(hold)
    waiter.result().release()


def test_who_only_tries_is_nobody(server, faced, locks, key):
    hold = faced.acquire(key)
    assert not faced.wanted(hold)
    for _ in range(10):
        with pytest.raises(rlock.NotAcquired):
            locks.acquire(key)
    never(lambda: faced.wanted(hold))
    faced.release(hold)


def test_it_lasts_as_long_as_somebody_waits(server, faced, locks, key):
    hold, cancel = faced.acquire(key, lease=6), rlock.Cancel()
    waiter = waits(server, locks, key, cancel=cancel)
    assert faced.wait_wanted(hold, 30)
    time.sleep(6)
    assert until(lambda: faced.wanted(hold))  # it was said again
    cancel.set()
    with pytest.raises(rlock.Cancelled):
        waiter.result()
    assert until(lambda: not faced.wanted(hold))
    never(lambda: faced.wanted(hold), 2)
    faced.release(hold)


def test_readers(server, faced, locks, key):
    hold = faced.acquire(key, mode="read")
    assert not faced.wanted(hold)
    locks.acquire(key, mode="read", wait=20).release()
    never(lambda: faced.wanted(hold), 0.5)
    waiter = waits(server, locks, key, mode="write")
    assert faced.wait_wanted(hold, 30)
    faced.release(hold)
    waiter.result().release()


def test_a_deadline_stays(server, faced, locks, key):
    hold = faced.acquire(key, watchdog=False, lease=12)
    deadline = hold._held.deadline
    waiter = waits(server, locks, key)
    time.sleep(2)
    assert faced.wait_wanted(hold, 30)
    assert server.info(key)[b"holders"][0][b"remaining-ms"] <= 10_100
    assert hold._held.deadline == deadline
    waiter.result().release()  # which has it when that is over
    assert until(lambda: faced.reason(hold))
    assert not faced.wanted(hold) and not faced.wait_wanted(hold, 60)


def test_it_renews_to_the_lease_that_the_hold_has(server, faced, locks, key):
    hold = faced.acquire(key, watchdog=False, lease=15)
    faced.renew(hold, 60)
    waiter = waits(server, locks, key)
    assert faced.wait_wanted(hold, 30)
    assert server.info(key)[b"holders"][0][b"remaining-ms"] > 20_000
    faced.release(hold)
    waiter.result().release()


def test_who_is_notified_of_a_loss_stays(server, faced, key):
    """The question is a renewal by the tag that the hold has."""
    hold = faced.acquire(key)
    before = renewals(server)
    assert not faced.wanted(hold) and until(lambda: renewals(server) > before)
    server.say(f"RLOCK.FORCE {key}")
    assert until(lambda: faced.reason(hold) == "forced")


def test_a_program_that_does_not_ask_sends_nothing(own_server, face, key):
    faced = face(own_server.port)
    hold = faced.acquire(key, lease=4)
    time.sleep(4)
    assert renewals(own_server) == 0
    for _ in range(50):
        faced.wanted(hold)
    assert until(lambda: renewals(own_server) == 1)
    never(lambda: renewals(own_server) != 1, 3)
    faced.release(hold)
    faced.wanted(hold)
    never(lambda: renewals(own_server) != 1, 0.3)


@pytest.mark.parametrize("how", ["release", "force", "close", "max", "cut"])
def test_whoever_waits_to_be_wanted_waits_no_longer_than_the_hold(server, face, proxy, key, how):
    faced = face(proxy.port)
    hold = faced.acquire(key, max=2) if how == "max" else faced.acquire(key)
    waker = InThread(lambda: faced.wait_wanted(hold, 300))
    assert until(lambda: hold._held.hint and hold._held.hint.waiting)
    if how == "release":
        faced.release(hold)
    elif how == "force":
        server.say(f"RLOCK.FORCE {key}")
    elif how == "cut":
        proxy.cut()
    elif how == "close":
        InThread(lambda: faced.do(faced.locks.close()) if hasattr(faced, "do") else faced.locks.close()).result()
    assert waker.result(60) is False
    assert not faced.wanted(hold)


@pytest.mark.parametrize("while_away", [False, True])
def test_the_next_connection_asks_too(server, face, proxy, locks, key, while_away):
    faced = face(proxy.port)
    hold = faced.acquire(key, watchdog=False, lease=120)
    if not while_away:
        assert not faced.wait_wanted(hold, 0.2)
    proxy.target = 1  # nobody listens there
    proxy.cut()
    waiter = waits(server, locks, key)
    waker = InThread(lambda: faced.wait_wanted(hold, 60))
    assert until(lambda: hold._held.hint) and not faced.wanted(hold)
    proxy.target = server.port
    assert waker.result()
    faced.release(hold)
    waiter.result().release()


def test_an_older_module(server, face, proxy, locks, key):
    faced, keys = face(proxy.port), [f"{key}:{number}" for number in range(4)]
    proxy.unknown = b"WANTED"
    holds = [faced.acquire(each, watchdog=bool(number % 2), lease=60) for number, each in enumerate(keys)]
    waiters = [waits(server, locks, each) for each in keys]
    before = renewals(server)
    for hold in holds:
        assert not faced.wait_wanted(hold, 0.5)
    assert [faced.reason(hold) for hold in holds] == [None] * 4
    assert renewals(server) == before + 1  # once for the whole connection
    # The next one may be to a newer one. A hold that is regained says so at once.
    proxy.unknown = None
    proxy.cut()
    assert until(lambda: faced.wanted(holds[0]) and faced.wanted(holds[2]))
    for hold in holds[::2]:
        faced.release(hold)
    for waiter in waiters:
        waiter.result().release()


def test_an_older_module_on_the_next_connection(server, face, proxy, key):
    """The hold is regained without the word."""
    faced = face(proxy.port)
    hold = faced.acquire(key, watchdog=False, lease=60)
    assert not faced.wait_wanted(hold, 0.2)
    proxy.unknown = b"WANTED"
    proxy.cut()
    faced.release(faced.acquire(f"{key}:other", wait=20))
    faced.release(faced.acquire(f"{key}:other", wait=20))  # what was said before has an answer
    server.say(f"RLOCK.FORCE {key}")
    assert until(lambda: faced.reason(hold) == "forced")


def test_a_user_who_may_not(own_server, face, key):
    own_server.say("ACL SETUSER low on nopass ~* &* +@all -rlock.renew")
    faced = face(own_server.port, user="low")
    with rlock.Locks(redis.Redis(port=own_server.port)) as others:
        hold = faced.acquire(key, lease=60)
        waiter = waits(own_server, others, key)
        assert not faced.wanted(hold) and not faced.wait_wanted(hold, 1)
        assert faced.reason(hold) is None
        faced.release(hold)
        waiter.result().release()


def test_several_keys_and_without_the_module(server, face, locks, key, tmp_path):
    faced, keys = face(server.port), [f"{{{key}}}:1", f"{{{key}}}:2"]
    before = renewals(server)
    hold = faced.acquire(keys)
    waiter = waits(server, locks, keys[1])
    assert not faced.wanted(hold) and not faced.wait_wanted(hold, 0.5)
    assert faced.reason(hold) is None and renewals(server) == before
    faced.release(hold)
    waiter.result().release()
    plain = Plain(tmp_path)
    try:
        faced = face(plain.port)
        hold = faced.acquire(key)
        assert not faced.wanted(hold) and not faced.wait_wanted(hold, 0.5)
        waker = InThread(lambda: faced.wait_wanted(hold, 60))
        assert until(lambda: hold._held.hint.waiting)  # which the hold has since it was asked
        faced.release(hold)
        assert waker.result() is False
    finally:
        plain.kill()


def test_a_quorum(server, face, locks, key):
    faced = face([server.port])
    hold = faced.acquire(key)
    waiter = waits(server, locks, key)
    assert not faced.wanted(hold) and not faced.wait_wanted(hold, 0.5)
    waker = InThread(lambda: faced.wait_wanted(hold, 60))
    assert until(lambda: hold._held.hint.waiting)
    faced.release(hold)
    assert waker.result() is False
    waiter.result().release()
    hold = faced.acquire(key)
    waker = InThread(lambda: faced.wait_wanted(hold, 60))
    server.say(f"RLOCK.FORCE {key}")
    assert waker.result() is False


# From wherever.


def test_the_first_use_from_a_callback(server, faced, locks, key):
    lost, hold, seen = faced.acquire(f"{key}:lost"), faced.acquire(key), []
    waiter = waits(server, locks, key)
    lost.lost.add_callback(lambda reason: seen.append(hold.wanted.is_set()))
    server.say(f"RLOCK.FORCE {key}:lost")
    assert until(lambda: seen)  # the answer to it may have come so soon, or not
    assert until(lambda: hold._held.hint and hold._held.hint.said > 0)  # and nobody has asked since
    assert faced.wanted(hold)
    faced.release(hold)
    waiter.result().release()


def test_the_first_use_from_another_thread(server, faced, locks, key):
    """In asyncio too, where the thread is none of the event loop's."""
    hold = faced.acquire(key)
    waiter = waits(server, locks, key)
    InThread(lambda: hold.wanted.is_set()).result()
    assert until(lambda: hold._held.hint and hold._held.hint.said > 0)  # and nobody has asked since
    assert until(lambda: hold.wanted.is_set())
    faced.release(hold)
    waiter.result().release()


def test_the_first_use_from_a_finaliser(server, faced, locks, key):
    hold, seen = faced.acquire(key), []
    waiter = waits(server, locks, key)

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            seen.append(hold.wanted.is_set())

    Cycle()
    collect()
    assert until(lambda: seen) and until(lambda: faced.wanted(hold))
    faced.release(hold)
    waiter.result().release()


def test_many_threads_wait(server, locks, key):
    hold = locks.acquire(key)
    wakers = [InThread(lambda: hold.wanted.wait()) for _ in range(20)]
    with rlock.Locks(redis.Redis(port=server.port)) as others:
        waiter = waits(server, others, key)
        assert all(waker.result() for waker in wakers)
        assert until(lambda: not hold._held.hint.waiting)
        hold.release()
        waiter.result().release()


def test_a_task_that_is_cancelled(server, locks, key):
    async def main():
        async with rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port)) as tasks:
            async with tasks.hold(key) as hold:
                waits_for_it = asyncio.create_task(hold.wanted.wait())
                await asyncio.sleep(0)
                assert len(hold._held.hint.waiting) == 1
                waits_for_it.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waits_for_it
                assert not hold._held.hint.waiting
                waits_for_it = asyncio.create_task(hold.wanted.wait())
                waiter = await asyncio.to_thread(waits, server, locks, key)
                assert await waits_for_it
        (await asyncio.to_thread(waiter.result)).release()

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_is_wanted_by_nobody(server, locks, key):
    hold = locks.acquire(key)
    with rlock.Locks(redis.Redis(port=server.port)) as others:
        waiter = waits(server, others, key)
        assert hold.wanted.wait(30)
        assert in_child(lambda: [hold.wanted.is_set(), hold.wanted.wait(30)]) == [False, False]
        assert hold.lost.reason is None
        hold.release()
        waiter.result().release()

"""A hold is wanted while somebody waits whom its release would serve."""

import asyncio
import os
import threading
import time

import pytest
import redis
import redis.asyncio
from plain import Plain
from servers import InThread, collect, until
from test_fork import in_child
from wire import Wire

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
    hold, cancel = faced.acquire(key, lease=3), rlock.Cancel()
    waiter = waits(server, locks, key, cancel=cancel)
    assert faced.wait_wanted(hold, 30)
    time.sleep(4)
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
    hold = faced.acquire(key, watchdog=False, lease=5)
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
    hold = faced.acquire(key, lease=1)
    time.sleep(1.5)
    assert renewals(own_server) == 0
    for _ in range(50):
        faced.wanted(hold)
    assert until(lambda: renewals(own_server) == 1)
    never(lambda: renewals(own_server) != 1, 1.5)
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
    assert until(lambda: seen) == [False]
    assert until(lambda: hold._held.hint and hold._held.hint.said > 0)  # and nobody has asked since
    assert faced.wanted(hold)
    faced.release(hold)
    waiter.result().release()


def test_the_first_use_from_another_thread(server, faced, locks, key):
    """In asyncio too, where the thread is none of the event loop's."""
    hold = faced.acquire(key)
    waiter = waits(server, locks, key)
    assert InThread(lambda: hold.wanted.is_set()).result() is False
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
    assert until(lambda: seen) == [False] and until(lambda: faced.wanted(hold))
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


# Without a server.


def message(wire, text):
    text, channel = text.encode(), wire.core.channel.encode()
    return b">3\r\n$7\r\nmessage\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(channel), channel, len(text), text)


def holds(**options):
    wire = Wire(patience=None)
    request = wire.ask(100, **options)
    wire.says(b":7\r\n", 100)
    wire.sent()
    return wire, request.held


def want(wire, held, at):
    wire.core.want(held, at)
    return wire.sent()


def renewed(sent):
    return [command for command in sent if command.startswith("RLOCK.RENEW ")]


def test_what_is_sent():
    wire, held = holds(lease=9, mode="read")
    asked = f"RLOCK.RENEW k {held.request.owner} 9000 READ NOTIFY {wire.core.channel} {held.tag} WATCHDOG WANTED"
    assert want(wire, held, 101) == [asked] and want(wire, held, 102) == []
    wire.says(message(wire, f"wanted {held.tag}"), 101.5)
    assert held.hint.said == 101.5  # the message may come before the reply
    wire.says(b":1\r\n", 101.5)
    wire, held = holds(lease=9, watchdog=False)
    assert want(wire, held, 101) == [
        f"RLOCK.RENEW k {held.request.owner} 8000 NOTIFY {wire.core.channel} {held.tag} WANTED"
    ]
    wire.says(b":1\r\n", 101.5)
    assert held.deadline == 109
    # On the next connection, with another tag.
    tag = held.tag
    wire.core.ended(102, "cut")
    wire.connect(103)
    asked = f"RLOCK.RENEW k {held.request.owner} 6000 NOTIFY {wire.core.channel} {held.tag} WANTED"
    assert held.tag != tag and asked in wire.sent() and held.deadline == 109


def test_a_loss_that_crosses_the_question():
    wire, held = holds()
    want(wire, held, 101)
    wire.says(message(wire, f"lost {held.tag} forced") + b"-NOTHELD gone\r\n", 101)
    assert held.reason == "forced"
    wire, held = holds()
    want(wire, held, 101)
    wire.says(b"-NOTHELD gone\r\n", 101)
    assert held.reason == "expired"


@pytest.mark.parametrize("said", [b"-ERR syntax error at 'WANTED': each keyword once\r\n", b"-NOPERM no permissions\r\n"])
def test_a_server_that_does_not_say_it(said):
    wire, held = holds(watchdog=False, lease=60)
    more = wire.ask(100, key="k2", watchdog=False, lease=60)
    wire.says(b":8\r\n", 100)
    wire.sent()
    want(wire, held, 101)
    wire.says(said, 101)
    assert not renewed(wire.until(105)) and held.reason is None
    assert want(wire, more.held, 106) == []
    wire.core.ended(107, "cut")
    wire.connect(108)
    asked = renewed(wire.sent())
    assert len(asked) == 2 and all(sent.endswith(" WANTED") for sent in asked)  # it may be another server now
    wire.says(said + said, 108)
    assert renewed(wire.sent()) == [sent.removesuffix(" WANTED") for sent in asked]
    # One that is over meanwhile is not asked for again.
    wire.core.ended(109, "cut")
    wire.connect(110)
    wire.core.release(held, 110)
    wire.sent()
    wire.says(said + said + b":1\r\n", 110)
    (asked,) = renewed(wire.sent())
    assert asked.startswith("RLOCK.RENEW k2 ") and not asked.endswith(" WANTED")
    assert held.over and not held.reason


def test_another_error_is_no_answer():
    wire, held = holds(lease=30)
    asked = want(wire, held, 101)
    wire.says(b"-BUSY a script runs\r\n", 101)
    assert wire.until(101.9) == [] and wire.until(102.1) == asked
    wire.says(b":1\r\n", 102.1)
    assert not renewed(wire.until(110))
    assert held.reason is None
    # Neither is it one for a hold that is over, or on another channel.
    for ends in ("release", "connection"):
        wire, held = holds(watchdog=False, lease=60)
        want(wire, held, 101)
        wire.says(b"-BUSY a script runs\r\n", 101)
        if ends == "release":
            wire.core.release(held, 101)
        else:
            wire.core.ended(101, "cut")
            wire.connect(101.5)
        wire.sent()
        assert not renewed(wire.until(103))


def test_a_message_that_comes_behind_a_release():
    wire, held = holds()
    want(wire, held, 101)
    wire.core.release(held, 101)
    wire.says(message(wire, f"wanted {held.tag}") + b":1\r\n:1\r\n", 101)
    wire.says(message(wire, f"wanted {held.tag}"), 102)
    assert held.over and not wire.core.drop
    wire.says(message(wire, "wanted 99") + message(wire, "unheard-of 1 2 3"), 102)
    assert not wire.core.drop


def test_a_grant_that_says_it():
    wire = Wire(patience=None)
    one, other, third = (wire.ask(100, key=key, wait=10) for key in ("k1", "k2", "k3"))
    wire.says(b"$6\r\nQUEUED\r\n" * 3, 100)
    wire.says(message(wire, f"granted {one.tag} 7 wanted"), 101)
    wire.says(message(wire, f"granted {other.tag} 8"), 101)
    wire.says(message(wire, f"granted {third.tag} 9 fancy"), 101)
    assert [request.held.token for request in (one, other, third)] == [7, 8, 9]
    assert one.held.hint.said == 101 and other.held.hint is third.held.hint is None


def test_a_hold_of_several_keys_is_not_asked_for():
    wire = Wire(patience=None)
    request = wire.ask(100, key=["k1", "k2"], watchdog=False, lease=60)
    wire.says(b":7\r\n", 100)
    wire.sent()
    assert want(wire, request.held, 101) == []
    wire.core.ended(102, "cut")
    wire.connect(103)
    assert not any("WANTED" in sent for sent in wire.sent())


def test_rings():
    wire, held = holds()
    rung = threading.Event()
    wire.core.want(held, 101)
    held.hint.waiting[rung.set] = None
    wire.core.release(held, 101)
    while wire.core.calls:
        wire.core.calls.popleft()()
    assert rung.is_set()

"""A hold gives way to whoever waits, and is a hold again."""

import asyncio
import contextlib
import os
import time
from datetime import timedelta

import pytest
import redis
import redis.asyncio
from plain import Plain
from servers import InThread, collect, until
from test_fork import in_child
from test_wanted import never, waits

import rlock
import rlock.asyncio


@pytest.fixture
def faced(face, server):
    return face(server.port)


def wanted(faced, hold):
    assert until(lambda: faced.wanted(hold))


def calls(server):
    """Of rlock's commands that say something of a lock."""
    stats = server.admin.info("commandstats")
    return {
        verb: stats.get(f"cmdstat_rlock.{verb}", {"calls": 0})["calls"]
        for verb in ("acquire", "release", "renew", "cancel", "macquire", "mrelease", "mrenew")
    }


def holder(server, key):
    (one,) = server.info(key)[b"holders"]
    return one


# Nothing is done.


def test_nobody_waits(own_server, face, key):
    faced = face(own_server.port)
    hold = faced.acquire(key)
    before, token = calls(own_server), hold.token
    assert faced.give_way(hold, least=0) is False
    assert until(lambda: calls(own_server) == {**before, "renew": 1})  # it asks to know, once
    for _ in range(50):
        assert faced.give_way(hold, least=0) is False
    never(lambda: calls(own_server) != {**before, "renew": 1}, 0.3)
    assert hold.token == token and faced.reason(hold) is None
    faced.release(hold)


@pytest.mark.parametrize("least", [60, timedelta(minutes=1), float("inf")])
def test_too_young(server, faced, locks, key, least):
    hold = faced.acquire(key)
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    before = calls(server)
    assert faced.give_way(hold, least=least) is False
    never(lambda: calls(server) != before, 0.2)
    assert holder(server, key)[b"token"] == hold.token
    faced.release(hold)
    waiter.result().release()


def test_least_is_counted_from_the_grant(server, faced, locks, key):
    hold = faced.acquire(key)
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    assert faced.give_way(hold, least=30) is False
    hold._held.since -= 31
    gives = InThread(lambda: faced.give_way(hold, least=30))
    waiter.result().release()
    assert gives.result() is True
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    assert faced.give_way(hold, least=30) is False
    faced.release(hold)
    waiter.result().release()


def test_without_the_module_or_with_an_older_one(server, face, proxy, locks, key, tmp_path):
    proxy.unknown = b"WANTED"
    faced = face(proxy.port)
    hold = faced.acquire(key, lease=60)
    waiter = waits(server, locks, key)
    assert faced.give_way(hold, least=0) is False
    time.sleep(0.5)
    assert faced.give_way(hold, least=0) is False and faced.reason(hold) is None
    faced.release(hold)
    waiter.result().release()
    plain = Plain(tmp_path)
    try:
        faced = face(plain.port)
        hold = faced.acquire(key)
        with rlock.Locks(redis.Redis(port=plain.port)) as others:
            waiter = InThread(lambda: others.acquire(key, wait=60))
            for _ in range(10):
                assert faced.give_way(hold, least=0) is False
                time.sleep(0.05)
            faced.release(hold)
            waiter.result().release()
    finally:
        plain.kill()


# It gives way.


@pytest.mark.parametrize(
    "options",
    [{}, {"watchdog": False, "lease": 60}, {"limit": 2, "permits": 2}, {"mode": "write"}, {"mode": "read"}, {"lease": 3}],
)
def test_who_waits_is_served_in_between(server, faced, locks, key, options):
    hold = faced.acquire(key, **options)
    first, about = hold.token, holder(server, key)
    other = {name: value for name, value in options.items() if name in ("limit", "mode")}
    waiter = waits(server, locks, key, **{**other, **({"mode": "write"} if "mode" in other else {})})
    wanted(faced, hold)
    gives = InThread(lambda: faced.give_way(hold, least=0))
    between = waiter.result()
    assert between.token > first
    assert until(lambda: server.waiters(key) == 1) and gives.thread.is_alive()
    between.release()
    assert gives.result() is True
    assert hold.token > between.token and faced.reason(hold) is None
    now = holder(server, key)
    assert now[b"token"] == hold.token and now[b"owner"].decode() == hold.owner
    assert [now[word] for word in (b"mode", b"lease-ms") if word in now] == [
        about[word] for word in (b"mode", b"lease-ms") if word in about
    ]
    faced.renew(hold)
    faced.release(hold)
    assert until(lambda: server.is_free(key))


def test_in_the_order_of_the_queue(server, faced, locks, key):
    hold, tokens = faced.acquire(key), []
    waiters = []
    for number in range(5):

        def turn():
            with locks.hold(key, wait=60) as other:
                tokens.append(other.token)

        waiters.append(InThread(turn))
        assert until(lambda: server.waiters(key) == number + 1)
    wanted(faced, hold)
    assert faced.give_way(hold, least=0) is True
    assert len(tokens) == 5 and hold.token > max(tokens)
    assert faced.give_way(hold, least=0) is False
    faced.release(hold)


def test_two_that_alternate(server, face, key):
    """Each gives way to the other."""
    faces, turns, inside, both = [face(server.port) for _ in range(2)], [0, 0], [], []

    def work(number):
        faced = faces[number]
        hold = faced.acquire(key, wait=60)
        tokens = []
        while min(turns) < 50:
            inside.append(number)
            both.append(len(inside))
            tokens.append(hold.token)
            time.sleep(0.002)
            inside.remove(number)
            turns[number] += faced.give_way(hold, 60, least=0.001)
        faced.release(hold)
        return tokens

    workers = [InThread(lambda number=number: work(number)) for number in range(2)]
    tokens = [worker.result(120) for worker in workers]
    assert min(turns) >= 50 and max(both) == 1
    assert all(each == sorted(each) and len(set(each)) >= 50 for each in tokens)


def test_a_lease_that_was_renewed(server, faced, locks, key):
    hold = faced.acquire(key, watchdog=False, lease=15)
    faced.renew(hold, 60)
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    gives = InThread(lambda: faced.give_way(hold, least=0))
    waiter.result().release()
    assert gives.result() and holder(server, key)[b"remaining-ms"] > 20_000
    faced.release(hold)


def test_max_is_counted_anew(server, faced, locks, key):
    hold = faced.acquire(key, max=8)
    ends = hold._held.ends
    time.sleep(2)
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    gives = InThread(lambda: faced.give_way(hold, least=0))
    waiter.result().release()
    assert gives.result() and hold._held.ends > ends + 1.9
    assert until(lambda: faced.reason(hold) == "max")


def test_it_is_wanted_again(server, faced, locks, key):
    """By whoever waits behind it; what was said before is not counted."""
    hold = faced.acquire(key)
    first = waits(server, locks, key)
    wanted(faced, hold)
    kept = hold.wanted
    gives = InThread(lambda: faced.give_way(hold, least=0))
    between = first.result()
    assert until(lambda: server.waiters(key) == 1)
    second = waits(server, locks, key, waiters=2)
    before = calls(server)["renew"]
    between.release()
    assert gives.result()
    wanted(faced, hold)
    assert kept.is_set() and calls(server)["renew"] == before  # the request itself has asked
    gives = InThread(lambda: faced.give_way(hold, least=0))
    second.result().release()
    assert gives.result() and not faced.wanted(hold)
    faced.release(hold)


def test_who_wants_to_know_of_its_loss(server, faced, locks, key):
    hold, seen = faced.acquire(key), []
    kept, gone = hold.lost, seen.append
    kept.add_callback(seen.append)
    kept.add_callback(gone)
    kept.add_callback(lambda reason: seen.append(f"again {reason}"))
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    gives = InThread(lambda: faced.give_way(hold, least=0))
    between = waiter.result()
    assert until(lambda: server.waiters(key) == 1)
    kept.remove_callback(gone)  # one of the two
    assert not kept.is_set()
    between.release()
    assert gives.result() and not kept.is_set() and not seen
    server.say(f"RLOCK.FORCE {key}")
    assert until(lambda: sorted(seen) == ["again forced", "forced"])
    assert kept.reason == "forced" and faced.reason(hold) == "forced"
    with pytest.raises(rlock.Lost, match="forced"):
        faced.release(hold)


def test_a_thread_that_waits_for_the_loss(server, locks, face, key):
    hold = locks.acquire(key)
    waits_for_it = InThread(lambda: hold.lost.wait(60))
    others = face(server.port)
    waiter = InThread(lambda: others.release(others.acquire(key, wait=60)))
    assert until(lambda: hold.wanted.is_set())
    assert hold.give_way(least=0)
    waiter.result()
    assert waits_for_it.thread.is_alive()
    server.say(f"RLOCK.FORCE {key}")
    assert waits_for_it.result() is True


def of_job(faced):
    job = faced.locks.job()
    return lambda key, **options: faced.do(job.acquire(key, **options)) if hasattr(faced, "do") else job.acquire(key, **options)


def test_other_locks_of_its_job_stay(server, faced, locks, key):
    acquire = of_job(faced)
    other, hold = acquire(f"{key}:other"), acquire(key)
    stays, owner = holder(server, f"{key}:other"), hold.owner
    assert other.owner == owner
    for _ in range(5):
        token = hold.token
        waiter = waits(server, locks, key)
        wanted(faced, hold)
        gives = InThread(lambda: faced.give_way(hold, least=0))
        between = waiter.result()
        assert between.token > token and until(lambda: server.waiters(key) == 1)
        assert holder(server, f"{key}:other")[b"token"] == stays[b"token"]
        between.release()
        assert gives.result() and hold.token > between.token and hold.owner == owner
    assert faced.reason(other) is None
    faced.release(hold)
    assert until(lambda: server.is_free(key)) and not server.is_free(f"{key}:other")
    faced.release(acquire(key))
    faced.release(other)


# It is refused.


def test_under_again(server, faced, locks, key):
    hold = faced.acquire(key)
    inner = faced.do(again(hold)) if hasattr(faced, "do") else hold.again()
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    before = calls(server)
    for one in (hold, inner):
        with pytest.raises(rlock.Error, match="again") as caught:
            faced.give_way(one, least=0)
        assert type(caught.value) is rlock.Error
    never(lambda: calls(server) != before, 0.2)
    faced.release(inner)
    gives = InThread(lambda: faced.give_way(hold, least=0))
    waiter.result().release()
    assert gives.result()
    faced.release(hold)


async def again(hold):
    return hold.again()


def test_several_keys(server, faced, key):
    hold = faced.acquire([f"{{{key}}}:1", f"{{{key}}}:2"])
    before = calls(server)
    with pytest.raises(rlock.Error, match="several keys"):
        faced.give_way(hold)
    assert calls(server) == before and faced.reason(hold) is None
    faced.release(hold)


def test_a_quorum(server, face, key):
    faced = face([server.port])
    hold = faced.acquire(key)
    with pytest.raises(rlock.Error, match="quorum"):
        faced.give_way(hold)
    assert faced.reason(hold) is None
    faced.release(hold)


def test_a_writer_that_reads_too_cannot_be(faced, key):
    """A job holds a key once: there is no hold that could give way beside another one."""
    acquire = of_job(faced)
    hold = acquire(key, mode="read")
    with pytest.raises(rlock.HeldByJob):
        acquire(key, mode="write")
    faced.release(hold)


@pytest.mark.parametrize("how", ["released", "forced"])
def test_a_hold_that_is_over(server, faced, key, how):
    hold = faced.acquire(key)
    if how == "released":
        faced.release(hold)
    else:
        server.say(f"RLOCK.FORCE {key}")
        assert until(lambda: faced.reason(hold))
    with pytest.raises(rlock.Lost) as caught:
        faced.give_way(hold)
    assert caught.value.reason == how


@pytest.mark.parametrize("bad", [{"wait": -1}, {"wait": "5"}, {"least": -1}, {"least": None}, {"wait": float("nan")}])
def test_bad_arguments(faced, key, bad):
    hold = faced.acquire(key)
    with pytest.raises((ValueError, TypeError)):
        faced.give_way(hold, **bad)
    faced.release(hold)


# It fails: the hold is over.


def over(server, faced, hold, key, reason="released"):
    assert faced.reason(hold) == reason and not faced.wanted(hold)
    assert "released" in repr(hold)
    for use in (faced.renew, faced.give_way):
        with pytest.raises(rlock.Lost) as caught:
            use(hold)
        assert caught.value.reason == reason
    faced.release(hold)  # raises nothing, and releases nothing of somebody else's


def test_the_time_is_over(server, faced, locks, key):
    hold, seen = faced.acquire(key), []
    hold.lost.add_callback(seen.append)
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    with pytest.raises(rlock.NotAcquired):
        faced.give_way(hold, 0.5, least=0)
    between = waiter.result()
    over(server, faced, hold, key)
    assert until(lambda: seen == ["released"])
    assert server.waiters(key) == 0 and holder(server, key)[b"token"] == between.token
    assert between.lost.reason is None
    between.release()
    faced.release(faced.acquire(key))


def test_the_scope_does_not_raise_again(server, locks, face, key):
    others = face(server.port)
    with locks.hold(key) as hold:
        waiter = InThread(lambda: others.acquire(key, wait=60))
        assert until(lambda: hold.wanted.is_set())
        with pytest.raises(rlock.NotAcquired):
            hold.give_way(wait=0.3, least=0)
        assert hold.lost.is_set()
        between = waiter.result()
    assert holder(server, key)[b"token"] == between.token
    with pytest.raises(rlock.NotAcquired):
        with locks.hold(f"{key}:2") as hold:
            waiter = InThread(lambda: others.acquire(f"{key}:2", wait=60))
            assert until(lambda: hold.wanted.is_set())
            hold.give_way(wait=0.3, least=0)
    others.release(waiter.result())
    others.release(between)


def test_a_deadlock(server, faced, locks, key):
    """The one who was served waits for another lock of the job."""
    acquire, job = of_job(faced), locks.job()
    other, hold = acquire(f"{key}:other"), acquire(key)
    waiter, waits_more = [InThread(lambda name=name: job.acquire(name, wait=60)) for name in (key, f"{key}:other")]
    assert until(lambda: server.waiters(key) == server.waiters(f"{key}:other") == 1)
    wanted(faced, hold)
    with pytest.raises(rlock.Deadlock):
        faced.give_way(hold, least=0)
    between = waiter.result()
    over(server, faced, hold, key)
    assert holder(server, key)[b"token"] == between.token and faced.reason(other) is None
    faced.release(other)
    waits_more.result().release()
    between.release()
    faced.release(acquire(key, wait=20))


@pytest.mark.parametrize("of_a_job", [False, True])
@pytest.mark.parametrize("verb", ["acquire", "release"])
def test_a_user_who_may_not_any_more(own_server, face, key, verb, of_a_job):
    server = own_server
    server.say("ACL SETUSER low on nopass ~* &* +@all")
    faced = face(server.port, user="low")
    hold = of_job(faced)(key) if of_a_job else faced.acquire(key)
    with rlock.Locks(redis.Redis(port=server.port)) as others:
        waiter = waits(server, others, key)
        wanted(faced, hold)
        server.say(f"ACL SETUSER low -rlock.{verb}")
        with pytest.raises(rlock.Refused) as caught:
            faced.give_way(hold, least=0)
        assert caught.value.code == "NOPERM"
        if verb == "release":
            assert until(lambda: server.waiters(key) == 1)  # what was asked for is cancelled
            assert not server.is_free(key)
            server.say(f"ACL SETUSER low +rlock.{verb}")
        over(server, faced, hold, key)
        waiter.result().release()
        assert until(lambda: server.is_free(key) and server.waiters(key) == 0)


def test_a_loss_that_it_learns_of_only_then(server, face, proxy, locks, key):
    """It is no hold that could give way: so it is not acquired anew."""
    faced = face(proxy.port)
    hold = faced.acquire(key)
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    proxy.frozen.set()
    server.say(f"RLOCK.FORCE {key}")
    between = waiter.result()
    gives = InThread(lambda: faced.give_way(hold, least=0))
    time.sleep(0.2)
    proxy.frozen.clear()
    with pytest.raises(rlock.Lost) as caught:
        gives.result()
    assert caught.value.reason == "forced"
    assert until(lambda: server.waiters(key) == 0)
    assert holder(server, key)[b"token"] == between.token
    between.release()
    assert until(lambda: server.is_free(key))


@pytest.mark.parametrize("of_a_job", [False, True])
@pytest.mark.parametrize("options", [{}, {"watchdog": False, "lease": 60}])
def test_the_connection_breaks(server, face, proxy, locks, key, options, of_a_job):
    """The request goes on by the next one."""
    faced = face(proxy.port)
    hold = (of_job(faced) if of_a_job else faced.acquire)(key, **options)
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    gives = InThread(lambda: faced.give_way(hold, least=0))
    between = waiter.result()
    assert until(lambda: server.waiters(key) == 1)
    proxy.cut()
    time.sleep(0.3)
    assert gives.thread.is_alive()
    between.release()
    assert gives.result() is True and hold.token > between.token
    assert holder(server, key)[b"token"] == hold.token
    faced.release(hold)
    assert until(lambda: server.is_free(key))


def test_there_is_no_connection_any_more(server, face, proxy, locks, key):
    faced = face(proxy.port, timeout=5)
    hold = faced.acquire(key, watchdog=False, lease=60)
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    proxy.target = 1  # nobody listens there
    proxy.cut()
    with pytest.raises(rlock.ConnectionError):
        faced.give_way(hold, 0.5, least=0)
    over(server, faced, hold, key)
    proxy.target = server.port  # and what is left to say is said there
    waiter.result(60).release()
    assert until(lambda: server.is_free(key) and server.waiters(key) == 0)


@pytest.mark.parametrize("how", ["release", "close"])
def test_it_is_ended_meanwhile(server, face, locks, key, how):
    faced = face(server.port)
    hold = faced.acquire(key)
    waiter = waits(server, locks, key)
    wanted(faced, hold)
    gives = InThread(lambda: faced.give_way(hold, least=0))
    between = waiter.result()
    assert until(lambda: server.waiters(key) == 1)
    if how == "release":
        faced.release(hold)
    else:
        InThread(lambda: faced.do(faced.locks.close()) if hasattr(faced, "do") else faced.locks.close()).result()
    with pytest.raises(rlock.Lost if how == "release" else rlock.ConnectionError):
        gives.result()
    assert faced.reason(hold) == "released" and until(lambda: server.waiters(key) == 0)
    assert holder(server, key)[b"token"] == between.token
    between.release()
    assert until(lambda: server.is_free(key))


def test_a_hold_that_has_given_way_and_is_forgotten(server, faced, locks, key):
    """It is released as any other."""
    hold = faced.acquire(key)
    waiter = InThread(lambda: locks.acquire(key, wait=60).release())
    wanted(faced, hold)
    assert faced.give_way(hold, least=0)
    waiter.result()
    assert not server.is_free(key)
    del hold
    assert until(lambda: server.is_free(key))


# From wherever.


def test_from_a_callback(server, locks, face, key):
    lost, hold, seen = locks.acquire(f"{key}:lost"), locks.acquire(key), []
    others = face(server.port)
    waiter = InThread(lambda: others.release(others.acquire(key, wait=60)))
    assert until(lambda: hold.wanted.is_set())
    lost.lost.add_callback(lambda reason: seen.append(hold.give_way(least=0)))
    server.say(f"RLOCK.FORCE {key}:lost")
    assert until(lambda: seen == [True])
    waiter.result()
    hold.release()


def test_a_finaliser_in_the_thread_that_reads(server, locks, face, key):
    """It could not wait there: nothing is done."""
    hold, others, seen = locks.acquire(key), face(server.port), []

    def in_there(at):
        try:
            seen.append(hold.give_way(least=0))
        except rlock.Error as error:
            seen.append(str(error))

    hold._loop.post(in_there)
    assert until(lambda: seen == [False])
    waiter = InThread(lambda: others.release(others.acquire(key, wait=60)))
    assert until(lambda: hold.wanted.is_set())
    hold._loop.post(in_there)
    assert until(lambda: len(seen) == 2) and "finaliser" in seen[1]
    assert hold.lost.reason is None and holder(server, key)[b"token"] == hold.token
    assert hold.give_way(least=0)
    waiter.result()
    hold.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_in_a_child(server, locks, face, key):
    hold = locks.acquire(key)
    others = face(server.port)
    waiter = InThread(lambda: others.release(others.acquire(key, wait=60)))
    assert until(lambda: hold.wanted.is_set())

    def child():
        try:
            return hold.give_way(least=0)
        except rlock.Lost as error:
            return error.reason

    assert in_child(child) == "fork"
    assert hold.give_way(least=0)
    waiter.result()
    hold.release()


# Tasks.


@contextlib.asynccontextmanager
async def in_tasks(server):
    async with rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port)) as tasks:
        yield tasks


async def wanted_by(server, locks, hold, key):
    waiter = await asyncio.to_thread(waits, server, locks, key)
    assert await hold.wanted.wait()
    return waiter


def test_a_task_that_is_cancelled(server, locks, key):
    async def main():
        async with in_tasks(server) as tasks:
            hold, seen = await tasks.acquire(key), []
            hold.lost.add_callback(seen.append)
            waiter = await wanted_by(server, locks, hold, key)
            gives = asyncio.create_task(hold.give_way(least=0))
            between = await asyncio.to_thread(waiter.result)
            assert await asyncio.to_thread(until, lambda: server.waiters(key) == 1)
            gives.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gives
            assert hold.lost.reason == await hold.lost.wait() == "released"
            assert await asyncio.to_thread(until, lambda: server.waiters(key) == 0) and seen == ["released"]
            assert holder(server, key)[b"token"] == between.token
            await hold.release()
            await asyncio.to_thread(between.release)
            assert await asyncio.to_thread(until, lambda: server.is_free(key))

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("how", ["wait", "wait_for"])
def test_a_scope_of_tasks(server, locks, key, how):
    """Its body is not cancelled for that, and it does not raise again."""

    async def main():
        async with in_tasks(server) as tasks:
            async with tasks.hold(key) as hold:
                waiter = await wanted_by(server, locks, hold, key)
                with pytest.raises((asyncio.TimeoutError, rlock.NotAcquired)):
                    if how == "wait":
                        await hold.give_way(0.3, least=0)
                    else:
                        await asyncio.wait_for(hold.give_way(least=0), 0.3)
                await asyncio.sleep(0.1)
                assert hold.lost.reason == "released"
            between = await asyncio.to_thread(waiter.result)
            assert between.lost.reason is None
            await asyncio.to_thread(between.release)
            assert await asyncio.to_thread(until, lambda: server.is_free(key) and server.waiters(key) == 0)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_loss_after_that_cancels_the_body(server, locks, key):
    async def main():
        async with in_tasks(server) as tasks:
            with pytest.raises(rlock.Lost) as caught:
                async with tasks.hold(key) as hold:
                    waiter = await wanted_by(server, locks, hold, key)
                    gives = asyncio.create_task(hold.give_way(least=0))
                    await asyncio.to_thread(lambda: waiter.result().release())
                    assert await gives
                    server.say(f"RLOCK.FORCE {key}")
                    await asyncio.sleep(60)
            assert caught.value.reason == "forced"

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_task_that_is_forgotten(server, locks, key):
    async def main():
        async with in_tasks(server) as tasks:
            hold = await tasks.acquire(key)
            waiter = await wanted_by(server, locks, hold, key)
            by_hand = hold.give_way(least=0)
            by_hand.send(None)
            between = await asyncio.to_thread(waiter.result)
            assert await asyncio.to_thread(until, lambda: server.waiters(key) == 1)
            del by_hand
            collect()
            assert await asyncio.to_thread(until, lambda: server.waiters(key) == 0)
            assert hold.lost.reason == "released"
            await asyncio.to_thread(between.release)
            assert await asyncio.to_thread(until, lambda: server.is_free(key))

    asyncio.run(asyncio.wait_for(main(), 60))

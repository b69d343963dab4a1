"""Locks by a majority of three real servers, with threads and with tasks."""

import asyncio
import threading
import time
from contextlib import ExitStack

import pytest
import redis
import redis.asyncio
from faces import Tasks, Threads
from servers import InThread, Proxy, Server, until
from test_fork import in_child

import rlock
import rlock.asyncio


@pytest.fixture
def servers(tmp_path):
    servers = [Server(tmp_path) for _ in range(3)]
    yield servers
    for server in servers:
        server.go_on()
        server.kill()


@pytest.fixture(params=[Threads, Tasks])
def face(request, servers):
    with ExitStack() as opened:

        def open_(ports=None, **options):
            quorum = request.param(ports or [server.port for server in servers], **options)
            opened.callback(quorum.close)
            return quorum

        yield open_


def all_free(servers):
    return until(lambda: all(server.is_free("jobs") for server in servers))


def stays(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition()
        time.sleep(0.02)


def releases(server):
    stats = server.admin.info("commandstats").items()
    return sum(calls["calls"] for name, calls in stats if name.lower() == "cmdstat_rlock.release")


def test_one_at_a_time_with_tokens_that_rise(servers, face):
    ours, theirs, last = face(), face(), 0
    for _ in range(5):
        hold = ours.acquire("jobs")
        assert hold.token > last and ours.reason(hold) is None
        last = hold.token
        with pytest.raises(rlock.NotAcquired):
            theirs.acquire("jobs")
        ours.release(hold)
        ours.release(hold)
        assert all_free(servers)


def test_handed_over_to_who_waits(servers, face):
    ours, theirs = face(), face()
    hold = ours.acquire("jobs")
    waits = InThread(lambda: theirs.acquire("jobs", wait=30))
    assert until(lambda: servers[0].waiters("jobs") == 1)
    assert servers[1].waiters("jobs") == servers[2].waiters("jobs") == 0
    ours.release(hold)
    hold = waits.result()
    theirs.release(hold)
    hold = ours.acquire("jobs")
    begun = time.monotonic()
    with pytest.raises(rlock.NotAcquired):
        theirs.acquire("jobs", wait=0.3)
    assert 0.3 <= time.monotonic() - begun < 20
    assert until(lambda: servers[0].waiters("jobs") == 0)
    ours.release(hold)
    assert all_free(servers)


def test_a_minority_that_is_away_does_not_matter_and_a_majority_does(servers, face):
    quorum = face()
    hold = quorum.acquire("jobs", lease=6)
    servers[0].kill()
    stays(lambda: quorum.reason(hold) is None, 7)
    quorum.release(hold)
    patient = face(timeout=60)
    for _ in range(3):
        begun = time.monotonic()
        patient.release(patient.acquire("jobs", lease=60))
        assert time.monotonic() - begun < 20
    servers[1].kill()
    with pytest.raises(rlock.ConnectionError):
        quorum.acquire("jobs")
    assert until(lambda: servers[2].is_free("jobs"))
    servers[1].start()
    hold = quorum.acquire("jobs", wait=20)
    quorum.release(hold)


def test_servers_that_come_back_count_again(servers, face):
    quorum, other = face(), face()
    hold = quorum.acquire("jobs", lease=6)
    servers[0].kill()
    time.sleep(6.5)  # longer than its lease there
    servers[0].start()  # with nothing in it
    assert until(lambda: not servers[0].is_free("jobs"))
    servers[1].kill()
    stays(lambda: quorum.reason(hold) is None, 7)
    with pytest.raises(rlock.NotAcquired):
        other.acquire("jobs")
    token = hold.token
    quorum.release(hold)
    assert until(lambda: servers[0].is_free("jobs") and servers[2].is_free("jobs"))
    servers[1].start()
    hold = quorum.acquire("jobs", wait=20)
    assert hold.token > token


def test_a_server_that_was_away_is_taken_too(servers, face):
    servers[2].kill()
    quorum = face()
    hold = quorum.acquire("jobs", lease=6)
    servers[2].start()
    assert until(lambda: not servers[2].is_free("jobs"))
    servers[0].kill()
    stays(lambda: quorum.reason(hold) is None, 7)
    quorum.release(hold)


def test_a_grant_that_comes_too_late_is_released_and_not_asked_for_again(servers, face):
    proxy = Proxy(servers[2].port)
    quorum = face([servers[0].port, servers[1].port, proxy.port])
    quorum.release(quorum.acquire("jobs"))
    assert all_free(servers)
    proxy.frozen.set()
    hold, before = quorum.acquire("jobs", lease=6), releases(servers[2])
    proxy.frozen.clear()
    assert until(lambda: releases(servers[2]) > before)
    stays(lambda: servers[2].is_free("jobs"), 4)
    assert quorum.reason(hold) is None
    quorum.release(hold)
    proxy.close()


def test_not_yet(servers, face):
    servers[0].say("CONFIG SET rlock.grant-after 600000")
    quorum = face()
    quorum.release(quorum.acquire("jobs"))
    servers[1].say("CONFIG SET rlock.grant-after 600000")
    with pytest.raises(rlock.Refused) as error:
        quorum.acquire("jobs")
    assert error.value.code == "NOTYET"
    waits = InThread(lambda: quorum.acquire("jobs", wait=30))
    time.sleep(0.2)
    servers[1].say("CONFIG SET rlock.grant-after 0")
    quorum.release(waits.result())


def test_lost_with_a_majority(servers, face):
    quorum = face()
    hold = quorum.acquire("jobs")
    # A majority is enough for it; the last one may come to count a moment later.
    assert until(lambda: all(member.valid > 0 for member in hold._held.request.home.core._members))
    servers[0].say("RLOCK.FORCE jobs")
    stays(lambda: quorum.reason(hold) is None, 0.2)
    servers[2].say("RLOCK.FORCE jobs")
    assert until(lambda: quorum.reason(hold) == "forced")
    assert all_free(servers)
    for act in (quorum.renew, quorum.release):
        with pytest.raises(rlock.Lost):
            act(hold)
    quorum.release(hold)


def test_lost_within_a_lease_when_a_majority_stands_still(servers, face):
    quorum = face()
    hold, reasons = quorum.acquire("jobs", lease=5), []
    hold.lost.add_callback(lambda reason: reasons.append((reason, time.monotonic())))
    servers[0].stop()
    servers[1].stop()
    begun = time.monotonic()
    assert until(lambda: reasons)
    assert [reason for reason, _ in reasons] == ["lease"] and reasons[0][1] - begun < 20
    servers[0].go_on()
    servers[1].go_on()
    assert all_free(servers)


def test_renewed_by_the_program(servers, face):
    quorum = face()
    hold = quorum.acquire("jobs", lease=20)
    servers[0].say("PEXPIRE jobs 9000")
    quorum.renew(hold)
    assert servers[0].say("PTTL jobs") > 19_000
    quorum.renew(hold, 20)
    with pytest.raises(ValueError):
        quorum.renew(hold, 10)
    hold.again()
    quorum.release(hold)
    assert not servers[0].is_free("jobs")
    quorum.release(hold)
    assert all_free(servers)


@pytest.mark.parametrize("phase", ["waiting", "pausing", "holding"])
def test_close(servers, face, phase):
    if phase != "holding":
        for server in servers[1 if phase == "pausing" else 0 :]:
            server.say("RLOCK.ACQUIRE jobs raw 60000")
    quorum = face()
    if phase == "holding":
        hold = quorum.acquire("jobs")
        quorum.locks.close() if isinstance(quorum, Threads) else quorum.do(quorum.locks.close())
        assert quorum.reason(hold) == "closed"
    else:
        waits = InThread(lambda: quorum.acquire("jobs", wait=60))
        time.sleep(0.3)
        quorum.locks.close() if isinstance(quorum, Threads) else quorum.do(quorum.locks.close())
        with pytest.raises(rlock.ConnectionError):
            waits.result()
        for server in servers:
            assert until(lambda server=server: server.waiters("jobs") == 0)
            server.say("RLOCK.RELEASE jobs raw IFHELD")
    assert all_free(servers)
    with pytest.raises(rlock.ConnectionError):
        quorum.acquire("jobs")


def test_programs_that_fight_for_it(servers, face):
    inside, tokens = threading.Semaphore(1), []

    def program():
        quorum = face()
        for _ in range(15):
            hold = quorum.acquire("jobs", wait=60)
            assert inside.acquire(blocking=False)
            tokens.append(hold.token)
            inside.release()
            quorum.release(hold)

    programs = [InThread(program) for _ in range(4)]
    for one in programs:
        one.result(60)
    assert tokens == sorted(set(tokens)) and len(tokens) == 60


def test_calling_off(servers):
    for server in servers:
        server.say("RLOCK.ACQUIRE jobs raw 60000")
    clients = [redis.Redis(port=server.port) for server in servers]
    with rlock.Quorum(clients) as quorum:
        cancel = rlock.Cancel()
        waits = InThread(lambda: quorum.acquire("jobs", wait=60, cancel=cancel))
        assert until(lambda: servers[0].waiters("jobs") == 1)
        cancel.set()
        with pytest.raises(rlock.Cancelled):
            waits.result()
        assert until(lambda: servers[0].waiters("jobs") == 0)

    async def tasks():
        clients = [redis.asyncio.Redis(port=server.port) for server in servers]
        async with rlock.asyncio.Quorum(clients) as quorum:
            task = asyncio.create_task(quorum.acquire("jobs", wait=60))
            await asyncio.to_thread(until, lambda: servers[0].waiters("jobs") == 1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert await asyncio.to_thread(until, lambda: servers[0].waiters("jobs") == 0)
            for server in servers:
                server.say("RLOCK.FORCE jobs")
            with pytest.raises(rlock.Lost):
                async with quorum.hold("jobs"):
                    servers[0].say("RLOCK.FORCE jobs")
                    servers[1].say("RLOCK.FORCE jobs")
                    await asyncio.sleep(20)

    asyncio.run(tasks())
    assert all_free(servers)


def test_fork(servers):
    with rlock.Quorum([redis.Redis(port=server.port) for server in servers]) as quorum:
        hold = quorum.acquire("jobs", lease=6)

        def look():
            with quorum.hold("child", wait=20):
                return hold.lost.reason

        for _ in range(10):
            assert in_child(look) == "fork"
        time.sleep(6.5)
        assert hold.lost.reason is None
        hold.release()


def test_bad_arguments():
    client = redis.Redis()
    with pytest.raises(ValueError):
        rlock.Quorum([client, client])
    with pytest.raises(ValueError):
        rlock.asyncio.Quorum([])
    with pytest.raises(ValueError, match="twice"):
        rlock.Quorum([client, redis.Redis(), client])
    with pytest.raises(TypeError, match="a list of clients"):
        rlock.Quorum(client)
    for key, options in ((["a", "b"], {}), ("a", {"lease": 0.05}), ("a", {"watchdog": True}), ("a", {"acks": 1})):
        with pytest.raises((ValueError, TypeError)):
            rlock.Quorum([client]).acquire(key, **options)

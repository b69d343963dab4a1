"""What needs no server."""

import math
import pickle
import sys
from datetime import timedelta

import pytest
import redis
import redis.asyncio

import rlock
import rlock.asyncio
from rlock import _ask, _beat, _clock, _resp


def test_replies_come_in_pieces():
    whole = (
        b"+OK\r\n:12\r\n$5\r\nab\r\nc\r\n_\r\n$-1\r\n-NOTHELD ann does not\r\n"
        b"%1\r\n$1\r\nk\r\n*2\r\n:1\r\n#t\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$9\r\ntimeout 1\r\n!6\r\nERR no\r\n"
    )
    expected = _resp.Parser().feed(whole)
    assert expected[:5] == [b"OK", 12, b"ab\r\nc", None, None]
    assert expected[5] == _resp.Failure("NOTHELD", "ann does not")
    assert expected[6] == {b"k": [1, True]}
    assert expected[7] == _resp.Push([b"message", b"c", b"timeout 1"])
    assert expected[8] == _resp.Failure("ERR", "no")
    for size in range(1, len(whole)):
        parser = _resp.Parser()
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert [reply for piece in pieces for reply in parser.feed(piece)] == expected


def test_words_of_a_request():
    asked = _ask.ask("k", wait=math.inf, lease=timedelta(seconds=3), limit=4, permits=2)
    assert asked.acquire("o", math.inf, "c", 7) == (
        *("RLOCK.ACQUIRE", b"k", "o", 3000, "LIMIT", 4, "PERMITS", 2),
        *("QUEUE", 0, "NOTIFY", "c", 7, "WATCHDOG", "ONCE"),
    )
    assert asked.release("o", 5) == ("RLOCK.RELEASE", b"k", "o", "PERMITS", 2, "IFTOKEN", 5)
    assert asked.release_all("o") == ("RLOCK.RELEASE", b"k", "o", "PERMITS", "ALL", "IFHELD")
    many = _ask.ask(["a", b"b"], watchdog=False)
    assert many.acquire("o", None, "c", 8) == (
        *("RLOCK.MACQUIRE", 2, b"a", b"b", "o", 10000, "NOTIFY", "c", 8, "ONCE"),
    )
    assert many.renew("o", 5) == ("RLOCK.MRENEW", 2, b"a", b"b", "o", 5)


def test_a_time_that_is_left_is_never_0():
    assert "QUEUE 1 " in " ".join(map(str, _ask.ask("k", wait=1).acquire("o", 1e-9, "c", 1)))


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ([], {}),
        (["a", "a"], {}),
        ("a", {"lease": 0}),
        ("a", {"lease": -1}),
        ("a", {"wait": -1}),
        ("a", {"wait": math.nan}),
        ("a", {"lease": math.inf}),
        ("a", {"lease": "10"}),
        ("a", {"mode": "READ"}),
        ("a", {"limit": 0}),
        ("a", {"limit": 2, "permits": 3}),
        ("a", {"permits": 2}),
        (["a", "b"], {"mode": "read"}),
        ("a", {"max": 5, "watchdog": False}),
        ("a", {"lease": True}),
        ("a", {"unknown": 1}),
        ("a", {"lease": sys.float_info.max}),
        ("a", {"max": sys.float_info.max}),
        ("a", {"acks": 1, "acks_time": 1e300}),
        ("a", {"acks": 1.5}),
        ("a", {"acks": True}),
        ("a", {"limit": 4.0}),
        ("a", {"limit": 4, "permits": 1.5}),
        ("a", {"limit": "4"}),
        (5, {}),
        (None, {}),
        (["a", None], {}),
        (bytearray(b"a"), {}),
    ],
)
def test_bad_arguments(key, options):
    with pytest.raises((ValueError, TypeError)):
        _ask.ask(key, **options)


def test_a_wait_of_more_than_the_server_takes_is_for_ever():
    for wait in (sys.float_info.max, 1e300, math.inf):
        wanted = _ask.ask("k", wait=wait)
        assert "QUEUE 0 " in " ".join(map(str, wanted.acquire("o", wanted.wait, "c", 1)))


@pytest.mark.parametrize("face", [(rlock, redis), (rlock.asyncio, redis.asyncio)])
@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf, 1e300, True, "5"])
def test_bad_times_to_connect(face, timeout):
    faced, of_redis = face
    with pytest.raises((ValueError, TypeError), match="timeout"):
        faced.Locks(of_redis.Redis(), timeout=timeout)
    with pytest.raises((ValueError, TypeError), match="timeout"):
        faced.Quorum([of_redis.Redis()], timeout=timeout)


@pytest.mark.parametrize("face", [(rlock, redis), (rlock.asyncio, redis.asyncio)])
@pytest.mark.parametrize("patience", [0, -1, timedelta(0), math.nan, math.inf, 1e300, True, "30"])
def test_bad_patience(face, patience):
    faced, of_redis = face
    with pytest.raises((ValueError, TypeError), match="patience"):
        faced.Locks(of_redis.Redis(), patience=patience)
    for good in (0.001, 30, timedelta(seconds=5), None):
        faced.Locks(of_redis.Redis(), patience=good)


@pytest.mark.parametrize("error", [rlock.Refused("OOM", "no room"), rlock.Lost("forced", "k"), rlock.NotAcquired((b"k",), "o")])
def test_errors_go_to_other_processes(error):
    """One that cannot be made again there breaks the program's pool of processes."""
    there = pickle.loads(pickle.dumps(error))
    assert (type(there), str(there), vars(there)) == (type(error), str(error), vars(error))


def test_timers_that_were_cancelled_do_not_pile_up():
    timers, seen = _clock.Timers(), []
    timers.at(5, seen.append)
    for _ in range(10_000):
        timers.cancel(timers.at(1, seen.append))
    assert len(timers._heap) < 200 and timers.next() == 5
    timers.run(6)
    assert seen == [6] and timers.next() == math.inf


def test_the_shortest_lease_sets_the_pace():
    beat, nine, three = _beat.Beat(), _beat.Counted(9000, True), _beat.Counted(3000, True)
    beat.start(100)
    assert (beat.ask_at(), beat.dead_at()) == (110, 130)
    beat.add(nine, 100)
    assert (beat.ask_at(), beat.dead_at()) == (103, 109)
    # A lease that begins when the proof is old does not end by it, and lengthens no other.
    beat.add(three, 107)
    assert beat.dead_at() == 109
    beat.proved(107.5)
    assert beat.dead_at() == 110.5
    beat.remove(three)
    assert beat.dead_at() == 116.5
    beat.remove(nine)
    assert beat.dead_at() == 137.5
    # One that is shorter than any answer takes ends no other.
    beat.add(nine, 108)
    beat.add(_beat.counted(1, True), 108)
    assert (beat.ask_at(), beat.dead_at()) == (100 + 0.1 / 3, 108.1)
    beat.remove(_beat.counted(1, True))
    assert _beat.counted(1, False).lease == 5000
    assert _beat.counted(9000, True).lease == _beat.counted(9000, False).lease == 9000
    assert beat.dead_at() == 117

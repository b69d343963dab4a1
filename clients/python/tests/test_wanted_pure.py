"""What a session says and hears of wanted holds, without a server."""

import threading

import pytest
from wire import Wire


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

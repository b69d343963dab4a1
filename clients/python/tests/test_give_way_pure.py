"""What a session says of a hold that gives way, without a server."""

import math

import pytest
from test_wanted_pure import message
from wire import Wire

from rlock import _ask, _hold, errors
from rlock._states import JobState, Request
from rlock._way import Way


class Loop:
    """In which steps are done at once."""

    forked = False

    def __init__(self, wire):
        self.core, self.router, self.at = wire.core, self, 100

    def ask(self, request, at):
        request.begin(at, 5)
        self.core.adopt(request, at)

    def post(self, step):
        step(self.at)
        self.settle()

    def settle(self):
        while self.core.calls:
            self.core.calls.popleft()()

    def later(self, call):
        call()


class Given:
    """A hold that gives way, and what was sent for that."""

    def __init__(self, job=None, **options):
        self.wire = Wire(patience=None)
        self.loop = Loop(self.wire)
        request = Request(_ask.ask("k", **options), job)
        self.hold = _hold.Hold(request, self.loop, None)
        self.loop.post(lambda at: self.loop.ask(request, at))
        self.says(b":7\r\n")
        self.owner, self.rang = request.owner, []
        self.wire.sent()
        self.way = Way(self.hold, math.inf)
        self.way.request.done = lambda: self.way.came(lambda: self.rang.append(True))
        self.loop.post(self.way.begin)
        self.sent = self.wire.sent()

    def says(self, reply, at=100):
        self.wire.says(reply, at)
        self.loop.settle()

    def asked(self, **options):
        request = self.way.request
        watchdog = "" if options.get("watchdog") is False else " WATCHDOG"
        return (
            f"RLOCK.ACQUIRE k {request.owner} {options.get('lease', 10) * 1000} QUEUE 0 NOTIFY {self.wire.core.channel} "
            f"{request.tag} WANTED{watchdog} ONCE"
        )


@pytest.mark.parametrize("job", [None, "job"])
def test_both_go_out_at_once(job):
    given = Given(job and JobState())
    assert given.sent == [f"RLOCK.RELEASE k {given.owner} IFTOKEN 7", given.asked()]
    assert (given.way.request.owner == given.owner) == bool(job)
    given.says(b":0\r\n+QUEUED\r\n")
    assert not given.rang and given.hold.token == 7
    given.says(message(given.wire, f"granted {given.way.request.tag} 9 wanted"), 101)
    assert given.rang and given.way.result() is True
    assert given.hold.token == 9 and given.hold.owner == given.way.request.owner and given.hold._held.hint.said == 101
    assert given.hold.lost._held is given.hold._held and given.wire.sent() == []


@pytest.mark.parametrize("reply", [b":9\r\n+MESSAGE", b"+MESSAGE:9\r\n"])
def test_the_message_may_come_before_the_reply(reply):
    given = Given()
    tag = given.way.request.tag
    given.says(b":0\r\n" + reply.replace(b"+MESSAGE", message(given.wire, f"wanted {tag}")), 102)
    assert given.way.result() is True and given.hold.token == 9 and given.hold._held.hint.said == 102


@pytest.mark.parametrize("job", [None, "job"])
def test_an_older_module(job):
    given = Given(job and JobState())
    given.says(b":0\r\n-ERR syntax error at 'WANTED': each keyword once\r\n")
    assert given.wire.sent() == [given.asked().replace(" WANTED", "")]
    given.says(b":9\r\n")
    assert given.way.result() is True and given.hold._held.hint is None
    given = Given()
    given.says(b":0\r\n-ERR syntax error at 'WANTED': each keyword once\r\n")
    given.wire.sent()
    given.says(b"-ERR syntax error at 'ONCE'\r\n")
    with pytest.raises(errors.Refused):
        given.way.result()


@pytest.mark.parametrize("job", [None, "job"])
@pytest.mark.parametrize("then", [b"+QUEUED\r\n", b":7\r\n", b"-NOREPLICAS no\r\n"])
def test_a_release_that_is_refused(job, then):
    """With the owner of a job the request is granted the hold that is to end."""
    given = Given(job and JobState())
    given.says(b"-NOREPLICAS no\r\n" + then)
    assert given.rang
    with pytest.raises(errors.Refused):
        given.way.result()
    given.way.fail()
    sent = given.wire.sent()
    owner = given.way.request.owner
    if then == b"+QUEUED\r\n":
        assert sent == [f"RLOCK.CANCEL k {owner}", f"RLOCK.RELEASE k {owner} ALL IFHELD"]
    elif then == b":7\r\n":
        assert sent == [f"RLOCK.RELEASE k {owner} IFTOKEN 7"]
    assert given.hold.lost.reason == "released" and given.hold._held.over
    retried = [command for command in given.wire.until(103) if command.startswith("RLOCK.RELEASE")]
    assert f"RLOCK.RELEASE k {given.owner} IFTOKEN 7" in retried


def test_a_connection_that_breaks():
    """What was released is released for certain first; a job's request waits for that."""
    for job in (None, JobState()):
        given = Given(job, watchdog=False)
        given.says(b"")
        given.wire.core.ended(101, "cut")
        given.loop.settle()
        given.wire.connect(102)
        sent = [command for command in given.wire.sent() if command.startswith("RLOCK.")]
        if job:
            assert sent == [f"RLOCK.RELEASE k {given.owner} ALL IFHELD"]
            given.says(b":0\r\n", 102)
            sent += given.wire.sent()
        assert sent == [f"RLOCK.RELEASE k {given.owner} ALL IFHELD", given.asked(watchdog=False)]


def test_it_is_gone_already():
    given = Given()
    given.says(b"-NOTHELD gone\r\n+QUEUED\r\n")
    with pytest.raises(errors.Lost, match="expired"):
        given.way.result()
    given.way.fail()
    assert given.hold.lost.reason == "expired"
    assert [command.split()[0] for command in given.wire.sent()] == ["RLOCK.CANCEL", "RLOCK.RELEASE"]

"""The rules of a quorum, with servers that say what the test wants them to."""

import pytest

from rlock import _ask, errors
from rlock._majority import Majority
from rlock._states import Held, Pending, Request

LEASE, DRIFT = 10.0, 0.102


class Stub:
    """A session, and its core."""

    forked = closed = False

    def __init__(self, test):
        self.core, self.test = self, test
        self.said, self.member = [], None

    def act(self, step):
        step(self, self.test.now)

    def take(self, member, ask, done, now):
        self.said.append("acquire")
        self.member, self.done = member, done
        member.request = Request(ask, member)
        return member.request

    def fence(self, member, token, now, then, lost):
        self.said.append(f"fence {token}")
        self.then, self.lost = then, lost

    def retire(self, member, now, then):
        self.said.append("release")
        self.over = then

    # What the server does.

    def grant(self, token):
        request = self.member.request
        request.held, request.finished = Held(request, token), True
        self.done()

    def refuse(self, error):
        self.member.request.error, self.member.request.finished = error, True
        self.done()

    def lose(self, reason):
        self.member.request.held.reason = reason
        self.lost(reason)


class World:
    def __init__(self, servers=3, **options):
        self.now = 1000.0
        self.servers = [Stub(self) for _ in range(servers)]
        self.core = Majority(self.servers, 2, self.act)
        wanted = _ask.ask("jobs", watchdog=False, lease=LEASE, **options)
        self.request = Request(wanted)
        self.act(self.ask)

    def ask(self, core, now):
        self.request.begin(now, 2)
        core.ask(self.request, now)

    def act(self, step):
        self.core.tick(self.now)
        step(self.core, self.now)
        while self.core.todo:
            session, todo = self.core.todo.popleft()
            session.act(todo)
        calls, self.core.calls = self.core.calls, []
        for call in calls:
            call()

    def pending(self, step):
        pending = Pending()
        self.act(lambda core, now: step(core, now, pending))
        return pending

    def passes(self, seconds):
        self.now += seconds
        self.act(lambda core, now: None)

    @property
    def said(self):
        said = [" ".join(server.said) for server in self.servers]
        for server in self.servers:
            server.said.clear()
        return said

    def held(self, token=5):
        """By the first two; the third is away."""
        s1, s2, s3 = self.servers
        s1.grant(token)
        s2.grant(token - 1)
        s3.refuse(errors.ConnectionError("away"))
        for server in (s1, s2):
            server.then(token, self.now)
        assert self.request.held
        assert self.said == [f"acquire fence {token}", f"acquire fence {token}", "acquire"]
        return self.request.held


def test_waiting_only_at_the_first_that_can_be_reached():
    world = World(wait=30)
    s1, s2, _ = world.servers
    assert world.said == ["acquire", "", ""] and s1.member.request.ask.wait == 30
    s1.refuse(errors.ConnectionError("away"))
    assert world.said == ["", "acquire", ""] and s2.member.request.ask.wait == 30
    s2.grant(3)
    assert world.said == ["", "", "acquire"] and world.servers[2].member.request.ask.wait == 0


def test_the_greatest_token_of_grants_that_are_in_time():
    world = World(servers=5)
    s1, s2, s3, s4, s5 = world.servers
    for server, token in ((s1, 3), (s2, 9), (s3, 4)):
        server.grant(token)
    world.passes(0.04)
    s4.grant(11)
    assert world.said == ["acquire"] * 5
    world.passes(0.02)
    assert world.said == ["fence 11"] * 4 + ["release"]
    s5.grant(20)
    assert world.said == [""] * 5 and s5.member.over


def test_a_server_counts_whose_counter_is_the_token():
    world = World()
    s1, s2, s3 = world.servers
    for server, token in ((s1, 5), (s2, 4), (s3, 3)):
        server.grant(token)
    s1.then(5, world.now)
    s2.then(6, world.now)
    assert not world.request.finished and s2.said[-1] == "release"
    s2.then(5, world.now)  # released: never again
    assert not world.request.finished
    s3.then(5, world.now)
    assert world.request.held.token == 5


def test_no_majority_is_released_at_all_of_them_and_tried_again_by_another_owner():
    world = World(wait=30)
    s1, s2, s3 = world.servers
    s1.grant(5)
    s2.refuse(errors.NotAcquired())
    owner = world.request.owner
    s3.refuse(errors.NotAcquired())
    assert world.said == ["acquire release", "acquire release", "acquire release"]
    world.passes(0.031)
    assert world.said == ["acquire", "", ""] and s1.member.owner == world.request.owner != owner
    for server in (s1, s2, s3):
        server.grant(6) if server is s1 else server.refuse(errors.NotAcquired())
    world.passes(60)
    s1.refuse(errors.NotAcquired())
    assert isinstance(world.request.error, errors.NotAcquired)


def test_not_yet_is_a_refusal_there():
    world = World()
    s1, s2, s3 = world.servers
    s1.refuse(errors.Refused("NOTYET", ""))
    s2.grant(5)
    s3.grant(6)
    assert world.said == ["acquire", "acquire fence 6", "acquire fence 6"]
    world = World()
    for server in world.servers:
        server.refuse(errors.Refused("NOTYET", ""))
    assert world.request.error.code == "NOTYET"


def test_valid_from_before_the_fence_was_sent():
    world = World()
    s1, s2, s3 = world.servers
    begun = world.now
    held = world.held()
    world.passes(LEASE / 3)
    assert world.said == ["fence 5", "fence 5", "acquire"]
    s1.then(5, world.now)  # one is no majority
    world.now = begun + LEASE - DRIFT - 0.01
    world.passes(0)
    assert held.reason is None
    world.passes(0.01)
    assert held.reason == "lease"
    assert [server.said[-1] for server in world.servers] == ["release"] * 3
    s2.then(5, world.now)
    s3.grant(7)
    assert held.reason == "lease" and not any("fence" in said for said in world.said[2:])


def test_a_server_that_comes_back_counts_whatever_its_counter_is():
    world = World()
    s1, s2, s3 = world.servers
    held = world.held()
    world.passes(LEASE / 3)
    s3.grant(50)
    assert world.said == ["fence 5", "fence 5", "acquire fence 5"]
    s3.then(50, world.now)
    s1.then(5, world.now)
    s2.lose("forced")
    assert held.reason is None and held.token == 5
    s3.lose("forced")
    assert held.reason == "forced"
    assert world.said == ["release"] * 3


def test_a_server_that_was_sent_a_release_is_out():
    world = World()
    s1, s2, s3 = world.servers
    s1.grant(5)
    s2.grant(5)
    world.passes(0.051)
    for server in (s1, s2):
        server.then(5, world.now)
    assert world.request.held and s3.said == ["acquire", "release"]
    for _ in range(3):
        world.passes(LEASE / 3)
        for server in (s1, s2):
            server.then(5, world.now)
    assert s3.said == ["acquire", "release"] and world.request.held.reason is None
    # Also if its session has sent it by itself.
    world = World()
    world.held()
    world.servers[2].member.out = True
    world.passes(LEASE / 3)
    assert world.said == ["fence 5", "fence 5", ""]


def test_renew():
    world = World()
    s1, s2, _ = world.servers
    held = world.held()
    refused = world.pending(lambda core, now, pending: core.renew(held, 5000, now, pending))
    assert isinstance(refused.error, ValueError)
    world.passes(0.1)
    pending = world.pending(lambda core, now, pending: core.renew(held, 10_000, now, pending))
    world.passes(0.5)
    s1.then(5, world.now)
    assert not pending.finished
    s2.then(5, world.now)
    assert pending.finished and not pending.error
    late = world.pending(lambda core, now, pending: core.renew(held, None, now, pending))
    world.passes(2)
    assert isinstance(late.error, errors.ConnectionError)


@pytest.mark.parametrize("lost", [0, 1])
def test_release_finds_out_that_it_was_lost(lost):
    world = World()
    held = world.held()
    pending = world.pending(lambda core, now, pending: core.release(held, now, pending))
    assert world.said == ["release"] * 3 and not pending.finished
    world.servers[0].over(errors.Lost("expired") if lost else None)
    world.servers[1].over(None)
    world.passes(0.051)  # nobody waits for the third
    assert pending.finished and isinstance(pending.error, errors.Lost) == bool(lost)

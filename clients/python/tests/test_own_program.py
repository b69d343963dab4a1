"""What a program does where no client likes it: finalisers, signal handlers, callbacks, forks."""

import contextlib
import copy
import gc
import pickle
import random
import signal
import threading
import time

import pytest
import redis
from servers import InThread, Server, collect, until
from test_fork import in_child

import rlock


@pytest.fixture(scope="module", params=["locks", "quorum"])
def world(request, tmp_path_factory):
    """The servers, and what makes a client of them."""
    count = 3 if request.param == "quorum" else 1
    servers = [Server(tmp_path_factory.mktemp("server")) for _ in range(count)]
    yield World(servers)
    for server in servers:
        server.kill()


class World:
    def __init__(self, servers):
        self.servers = servers

    def make(self, **options):
        clients = [redis.Redis(port=server.port) for server in self.servers]
        return rlock.Quorum(clients, **options) if len(clients) > 1 else rlock.Locks(clients[0], **options)

    def is_free(self, key):
        return all(server.is_free(key) for server in self.servers)

    def has(self, hold, key):
        """It is the program's, by its own word and the servers'."""
        holders = [server.info(key)[b"holders"] for server in self.servers]
        ours = [one for one in holders if one and one[0][b"owner"].decode() == hold.owner]
        return hold.lost.reason is None and len(ours) > len(self.servers) // 2

    def empty(self):
        """Nothing is held or waited for at any server."""
        return all(
            server.is_free(key) and server.waiters(key) == 0
            for server in self.servers
            for key in server.admin.keys()
            if server.admin.type(key) == b"hash"
        )

    def lose(self, key):
        for server in self.servers:
            server.say(f"RLOCK.FORCE {key}")


@pytest.fixture
def locks(world):
    with world.make() as locks:
        yield locks
    assert until(world.empty)


def works(locks, world, key):
    """A new key can be acquired at once, in another thread too, and is free again."""
    for take in (lambda: locks.acquire(f"{key}:new"), lambda: InThread(lambda: locks.acquire(f"{key}:new")).result()):
        take().release()
    assert until(lambda: world.is_free(f"{key}:new"))


class Node:
    """In a cycle, so that only the garbage collector ends it, wherever that runs."""

    def __init__(self, hold, end):
        self.me, self.hold, self.end = self, hold, end

    def __del__(self):
        with contextlib.suppress(rlock.Lost):  # the hold's own finaliser may have come first
            self.end(self.hold)


ENDS = {
    "release": lambda hold, locks: hold.release(),
    "renew": lambda hold, locks: (hold.renew(), hold.release()),
    "look": lambda hold, locks: (hold.lost.is_set(), hold.lost.wait(0.001), hold.again(), hold.release()),
    "wanted": lambda hold, locks: (hold.wanted.is_set(), hold.wanted.wait(0.001), hold.release(), hold.wanted.wait()),
    "nothing": lambda hold, locks: None,
}


@pytest.mark.parametrize("end", ENDS)
def test_a_finaliser_in_a_cycle(world, locks, key, end):
    standing = locks.acquire(f"{key}:stands")
    threshold = gc.get_threshold()
    gc.set_threshold(50, 2, 2)  # in the client's threads too, soon
    try:
        for number in range(150):
            Node(locks.acquire(f"{key}:{number}"), lambda hold: ENDS[end](hold, locks))
    finally:
        gc.set_threshold(*threshold)
    collect()
    assert until(lambda: all(world.is_free(f"{key}:{number}") for number in range(150)))
    assert world.has(standing, f"{key}:stands")
    works(locks, world, key)
    standing.release()


def test_a_finaliser_that_acquires(world, locks, key):
    def end(hold):
        with contextlib.suppress(rlock.Error):
            locks.acquire(f"{key}:by a finaliser", wait=20).release()

    threshold = gc.get_threshold()
    gc.set_threshold(50, 2, 2)
    try:
        for number in range(100):
            Node(locks.acquire(f"{key}:{number}"), end)
    finally:
        gc.set_threshold(*threshold)
    collect()
    works(locks, world, key)


def test_a_finaliser_in_the_thread_that_reads(world, locks, key):
    """What it does there is done, and not waited for; only a lock cannot be acquired."""
    one, two, seen = locks.acquire(f"{key}:1"), locks.acquire(f"{key}:2"), []

    def in_there(at):
        one.release()
        two.renew()
        two.lost.wait(10)
        two.wanted.wait(10)
        seen.append(two.lost.reason)
        with pytest.raises(rlock.Error, match="finaliser"):
            locks.acquire(f"{key}:3", wait=10)
        two.again()
        two.release()
        two.release()
        seen.append("over")

    two._loop.post(in_there)
    assert until(lambda: seen == [None, "over"])
    assert until(lambda: world.is_free(f"{key}:1") and world.is_free(f"{key}:2"))
    works(locks, world, key)


def test_a_generator_that_is_forgotten(world, locks, key):
    def work(name):
        with locks.hold(name):
            yield 1

    for number in range(30):
        cycle = [work(f"{key}:{number}")]
        next(cycle[0])
        cycle.append(cycle)
        del cycle
    collect()
    assert until(lambda: all(world.is_free(f"{key}:{number}") for number in range(30)))
    works(locks, world, key)


def test_a_hold_that_is_forgotten(world, locks, key, caplog):
    locks.acquire(key)
    assert until(lambda: world.is_free(key))
    assert until(lambda: any("forgotten" in record.message for record in caplog.records))
    with locks.acquire(key) as hold:
        hold.again()
    assert world.has(hold, key)  # one of `again` is held still
    del hold
    assert until(lambda: world.is_free(key))


def test_callbacks_do_what_they_like(world, locks, key):
    seen, blocked = [], threading.Event()
    holds = [locks.acquire(f"{key}:{number}") for number in range(6)]
    others = [locks.acquire(f"{key}:other:{number}") for number in range(3)]
    holds[0].lost.add_callback(lambda reason: blocked.wait(60))
    holds[1].lost.add_callback(lambda reason: (others[0].release(), seen.append("release")))
    holds[2].lost.add_callback(lambda reason: (others[1].renew(), seen.append("renew")))
    holds[3].lost.add_callback(lambda reason: (locks.acquire(f"{key}:mine").release(), seen.append("acquire")))
    holds[4].lost.add_callback(lambda reason: 1 / 0)
    holds[5].lost.add_callback(lambda reason: (blocked.wait(60), seen.append("blocked")))
    for number in range(6):
        world.lose(f"{key}:{number}")
    assert until(lambda: sorted(seen) == ["acquire", "release", "renew"])
    works(locks, world, key)
    blocked.set()
    assert until(lambda: "blocked" in seen)
    assert world.is_free(f"{key}:other:0") and world.has(others[1], f"{key}:other:1")


def test_what_is_no_callback(world, locks, key):
    """Is said at once: found out at the loss, it would take all other holds along."""

    async def task(reason):
        pass

    other, hold = locks.acquire(f"{key}:other"), locks.acquire(key)
    for callback in (None, 5, task):
        with pytest.raises(TypeError, match="callback"):
            hold.lost.add_callback(callback)
    world.lose(key)
    assert hold.lost.wait(20) and world.has(other, f"{key}:other")
    works(locks, world, key)


def test_callbacks_that_are_compared(world, locks, key):
    """By their identity: the thread that reads asks nothing of the program."""

    class Odd:
        def __init__(self):
            self.seen = []

        def __call__(self, reason):
            self.seen.append(reason)

        def __eq__(self, other):
            raise RuntimeError("not to be called")

    other, hold = locks.acquire(f"{key}:other"), locks.acquire(key)
    odd, gone, seen, called = Odd(), Odd(), [], []
    for callback in (odd, gone, gone.__call__, seen.append, called.append):
        hold.lost.add_callback(callback)
    for callback in (gone, gone.__call__, seen.append, Odd()):
        hold.lost.remove_callback(callback)
    world.lose(key)
    assert until(lambda: odd.seen and called)
    assert (odd.seen, gone.seen, seen, called) == (["forced"], [], [], ["forced"])
    assert world.has(other, f"{key}:other")


def test_nothing_is_copied(world, locks, key):
    """The end of a copy would be the end of the hold, or of the locks."""
    hold = locks.acquire(key)
    for one in (hold, locks, world.make()):
        for how in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="copied"):
                how(one)
    collect()
    assert world.has(hold, key)


def test_a_hold_that_is_over_is_not_entered(world, locks, key):
    with locks.acquire(key) as hold:
        pass
    with pytest.raises(rlock.Lost, match="released"):
        with hold:
            raise AssertionError("without the lock")
    hold = locks.acquire(key)
    world.lose(key)
    assert hold.lost.wait(20)
    with pytest.raises(rlock.Lost, match="forced"):
        with hold:
            raise AssertionError("without the lock")
    scope = locks.hold(key)
    with scope:
        pass
    with pytest.raises(RuntimeError, match="once"):
        with scope:
            raise AssertionError("a scope is of one hold")


def test_many_callbacks_that_wait_for_each_other(world, locks, key):
    """More of them than any pool has threads: none waits for ever."""
    count = 40
    gate = threading.Barrier(count + 1)
    holds = [locks.acquire(f"{key}:{number}") for number in range(count)]
    for hold in holds:
        hold.lost.add_callback(lambda reason: gate.wait(60))
    for number in range(count):
        world.lose(f"{key}:{number}")
    gate.wait(60)
    works(locks, world, key)


@pytest.mark.parametrize("what", ["close", "exit"])
def test_a_callback_that_closes_or_ends_its_thread(world, key, what):
    locks, seen = world.make(), []
    one, two = locks.acquire(f"{key}:1"), locks.acquire(f"{key}:2")

    def callback(reason):
        locks.close()
        if what == "exit":
            raise SystemExit

    one.lost.add_callback(callback)
    two.lost.add_callback(seen.append)
    world.lose(f"{key}:1")
    assert until(lambda: seen == ["closed"])
    locks.close()
    assert until(world.empty)


def test_a_callback_that_forks(world, locks, key):
    hold, other, seen = locks.acquire(f"{key}:1"), locks.acquire(f"{key}:2"), []

    def child():
        reason = other.lost.reason
        with locks.hold(f"{key}:child", wait=10):
            return reason

    hold.lost.add_callback(lambda reason: seen.append(in_child(child)))
    world.lose(f"{key}:1")
    assert until(lambda: seen == ["fork"])
    assert world.has(other, f"{key}:2")
    works(locks, world, key)


def test_close_from_everywhere(world, key):
    def by_callback(locks, hold):
        hold.lost.add_callback(lambda reason: locks.close())
        world.lose(key)

    def by_the_thread_that_reads(locks, hold):
        hold._loop.post(lambda at: locks.close())

    def by_a_finaliser(locks, hold):
        Node(hold, lambda hold: locks.close())
        collect()

    def by_two_threads(locks, hold):
        for thread in [InThread(locks.close) for _ in range(4)]:
            thread.result()

    for way in (by_callback, by_the_thread_that_reads, by_a_finaliser, by_two_threads):
        locks = world.make()
        hold = locks.acquire(key, wait=10)
        waits = InThread(lambda: locks.acquire(key, wait=60))
        time.sleep(0.02)
        way(locks, hold)
        with contextlib.suppress(rlock.ConnectionError, rlock.Lost):  # it may have had it, till then
            waits.result().release()
        assert until(world.empty)
        assert until(lambda: hold.lost.reason and locks._closed)
        with pytest.raises(rlock.ConnectionError):
            locks.acquire(key)


# Signals.


def for_seconds(seconds, enough):
    """Whether to go on: for so long, or until there was enough of it, where the machine is slow."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end or (not enough() and time.monotonic() < end + 100)


class Stop(Exception):
    pass


@contextlib.contextmanager
def alarms(handler, low=0.00002, high=0.002):
    """A signal at a random time, again and again."""

    def handle(number, frame):
        try:
            handler()
        finally:
            if not over:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(low, high))

    over = []
    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, random.uniform(low, high))
    try:
        yield
    finally:
        over.append(True)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_handler_that_uses_the_locks(world, locks, key):
    standing, done, deep = locks.acquire(f"{key}:stands"), [0], [False]

    def handler():
        if deep[0]:
            return
        deep[0] = True
        try:
            assert not standing.lost.is_set() and not standing.wanted.is_set()
            standing.renew()
            if done[0] % 3 == 0:
                locks.acquire(f"{key}:handler", wait=20).release()
            done[0] += 1
        finally:
            deep[0] = False

    goes_on = for_seconds(2, lambda: done[0] > 50)
    with alarms(handler, high=0.005):
        while goes_on():
            with locks.hold(key, wait=20) as hold:
                hold.renew()
    assert done[0] > 50 and world.has(standing, f"{key}:stands")
    works(locks, world, key)
    standing.release()


def test_a_handler_that_releases_what_the_program_releases(world, locks, key):
    hold, done = None, 0

    def handler():
        if hold:
            with contextlib.suppress(rlock.Lost):
                hold.release()

    goes_on = for_seconds(1.5, lambda: done > 10)
    with alarms(handler):
        while goes_on():
            with contextlib.suppress(rlock.Lost):
                hold = locks.acquire(key, wait=20)
                hold.renew()
                hold.release()
                done += 1
    assert done > 10 and until(lambda: world.is_free(key))
    works(locks, world, key)


def test_a_handler_that_closes(world, key):
    for _ in range(25):
        locks = world.make()
        with alarms(locks.close, low=0.0005, high=0.01), pytest.raises(rlock.Error):
            while True:
                locks.acquire(key, wait=20).release()
    assert until(world.empty)


def test_a_handler_that_raises(world, locks, key):
    """At a random instruction, also between the return of a call and what is done with it."""
    standing, raised = locks.acquire(f"{key}:stands"), 0

    def handler():
        if armed:
            armed.clear()
            raise Stop

    armed, goes_on = [], for_seconds(3, lambda: raised > 30)
    with alarms(handler):
        while goes_on():
            hold = None
            try:
                armed.append(True)
                hold = locks.acquire(key, wait=20)
                hold.renew()
                hold.release()
                with locks.hold(key, wait=20) as inner, inner.again():
                    pass
                armed.clear()
            except Stop:
                raised += 1
            hold = inner = None  # noqa: F841
    assert raised > 30
    assert until(lambda: world.is_free(key))
    assert world.has(standing, f"{key}:stands")
    works(locks, world, key)
    standing.release()


def test_an_image_that_is_started_twice_has_no_owner_in_it(world):
    """Jobs that were made, and not used yet, when the image was taken: each copy draws its own."""
    if len(world.servers) > 1:
        return  # a quorum has no jobs
    with world.make() as locks:
        job, copy_of_it = locks.job(), locks.job()
        copy_of_it._job = copy.deepcopy(job._job)
        with job.hold("image") as hold, copy_of_it.hold("other") as other:
            assert hold.owner == job.owner != copy_of_it.owner == other.owner
        with job.hold("image") as hold:
            assert hold.owner == job.owner

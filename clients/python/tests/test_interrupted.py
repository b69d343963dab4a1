"""An exception at every line of the client that the main thread runs, one line in each run; for
asyncio a cancellation at every suspension. Afterwards each lock is free or the program's."""

import asyncio
import contextlib
import os
import sys
import time
from collections import Counter

import pytest
import redis
import redis.asyncio
from servers import InThread, collect, until
from test_own_program import World, works, world  # noqa: F401

import rlock
import rlock.asyncio

CLIENT = os.path.dirname(rlock.__file__)


# What a finaliser raises is not reported, but it does what it has to.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Stop(BaseException):
    """As a signal handler raises it: Ctrl-C, a soft time limit."""


class Tracer:
    """Raises at the nth line; `lines` counts them."""

    def __init__(self, at):
        self.at, self.lines, self.where = at, 0, ""
        self.seen = Counter()  # the third time in a loop is as the second one

    def __call__(self, frame, event, arg):
        code = frame.f_code
        if not (code.co_filename.startswith(CLIENT) or code.co_filename.endswith("contextlib.py")):
            return None
        return self.line

    def line(self, frame, event, arg):
        place = (frame.f_code, frame.f_lineno, event)
        if event in ("line", "return") and self.seen[place] < 2:
            self.seen[place] += 1
            self.lines += 1
            if self.lines == self.at:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} {event}"
                raise Stop
        return self.line


class Run:
    """One run of what is tried, with what it leaves in `held`."""

    def __init__(self, world, locks, key):
        self.world, self.locks, self.key, self.held = world, locks, key, None
        self.client = redis.Redis(port=world.servers[0].port)

    def acquire(self):
        self.held = self.locks.acquire(self.key)
        self.held.release()

    def wait(self):
        self.held = self.locks.acquire(self.key, wait=20)
        self.held.release()

    def cancel(self):
        self.held = self.locks.acquire(self.key, wait=20, cancel=rlock.Cancel())
        self.held.release()

    def scope(self):
        with self.locks.hold(self.key, wait=20) as hold:
            assert self.world.has(hold, self.key)

    def renew(self):
        with self.locks.hold(self.key) as hold:
            hold.renew()
            assert not hold.lost.wait(0.001)

    def wanted(self):
        with self.locks.hold(self.key) as hold:
            assert not hold.wanted.is_set() and not hold.wanted.wait(0.001)
            assert self.world.has(hold, self.key)

    def again(self):
        with self.locks.hold(self.key) as hold:
            with hold.again() as inner:
                assert not inner.lost.is_set()
            with contextlib.suppress(rlock.Lost):
                hold.again().release()

    def callback(self):
        with self.locks.hold(self.key) as hold:
            hold.lost.add_callback(str)
            hold.lost.remove_callback(str)

    def taken(self):
        with contextlib.suppress(rlock.NotAcquired):
            self.locks.acquire(f"{self.key}:stands")


    def drop_in(self):
        with self.client.lock(self.key, timeout=20, lock_class=rlock.Lock) as lock:
            lock.extend(5)
            lock.reacquire()
            assert lock.owned() and lock.locked()


def at_every_line(run, check):
    """Calls it with an exception at its first line, at its second ... until it has no more."""
    at = 1
    while True:
        tracer = Tracer(at)
        sys.settrace(tracer)
        try:
            run()
        except Stop:
            pass
        finally:
            sys.settrace(None)
        if not tracer.where:
            return at - 1
        check(tracer.where)
        at += 1


@pytest.mark.parametrize("what", ["acquire", "wait", "cancel", "scope", "renew", "wanted", "again", "callback", "taken", "drop_in"])
def test_an_exception_at_every_line(world, key, what):  # noqa: F811
    with world.make() as locks:
        standing = locks.acquire(f"{key}:stands")
        tried = Run(world, locks, key)
        if what == "drop_in":
            tried.drop_in()  # the first one of a client connects

        def check(where):
            tried.held = None
            assert until(lambda: world.is_free(key)), where
            assert world.has(standing, f"{key}:stands"), where

        lines = at_every_line(getattr(tried, what), check)
        assert lines > 20
        works(locks, world, key)
        standing.release()
    assert until(world.empty)


def waits_for(locks, key):
    """Somebody who has the lock once."""
    return InThread(lambda: locks.acquire(key, wait=20).release())


@pytest.fixture
def one_server(world):  # noqa: F811
    if len(world.servers) > 1:
        pytest.skip("a hold by quorum cannot give way")
    return world


@pytest.mark.parametrize("how", ["scope", "kept", "job"])
def test_an_exception_at_every_line_of_giving_way(one_server, key, how):
    """Whoever waited is served. The hold is the program's, or over, and then nothing is left of it."""
    world, waiters, holds = one_server, [], []
    with world.make() as locks, world.make() as others:
        standing = locks.acquire(f"{key}:stands")
        acquire = locks.job().acquire if how == "job" else locks.acquire

        def run():
            hold = acquire(key, wait=20)
            if how == "kept":
                holds.append(hold)
            with contextlib.nullcontext() if how == "kept" else hold:
                waiters.append(waits_for(others, key))
                while not hold.wanted.is_set():
                    time.sleep(0.001)
                assert hold.give_way(least=0) and world.has(hold, key)

        def check(where):
            if holds:
                hold = holds.pop()
                assert until(lambda: hold.lost.is_set() or world.has(hold, key)), where
                hold.release()
            if waiters:
                waiters.pop().result()
            assert until(lambda: world.is_free(key)) and world.has(standing, f"{key}:stands"), where

        assert at_every_line(run, check) > 50
        check("the end")
        works(locks, world, key)
        standing.release()
    assert until(world.empty)


def test_an_exception_at_every_line_of_a_release_that_is_kept(world, key):  # noqa: F811
    """What is raised out of `release` is either before it or after: the hold is the program's, or over."""
    with world.make() as locks:
        hold = locks.acquire(key)

        def check(where):
            nonlocal hold
            assert until(lambda: world.is_free(key) or world.has(hold, key)), where
            hold.release()
            assert until(lambda: world.is_free(key)), where
            hold = locks.acquire(key)

        at_every_line(lambda: hold.release(), check)
        works(locks, world, key)


def test_an_exception_at_every_line_of_the_first_request_and_of_close(world, key):  # noqa: F811
    made = []

    def run():
        made.append(world.make())
        with made[-1].acquire(key, wait=20):
            pass
        made[-1].close()

    def check(where):
        if made:
            locks = made.pop()
            with contextlib.suppress(rlock.ConnectionError):
                locks.acquire(f"{key}:new").release()
            locks.close()
            with pytest.raises(rlock.ConnectionError):
                locks.acquire(key)
        assert until(world.empty), where

    # The client's own lines: what redis-py's are in `make` is not asked.
    at_every_line(run, check)
    assert InThread(lambda: until(world.empty)).result()


# asyncio.


async def at_every_suspension(run, check):
    """A task that is cancelled at its first suspension, at its second ...; how many there were."""
    loop, at = asyncio.get_running_loop(), 0
    while True:
        task = loop.create_task(run())
        count = 0
        waits = None
        while not task.done():
            # A suspension is another future that the task waits for.
            if task._fut_waiter is not waits or (waits is None and count == 0):
                waits = task._fut_waiter
                if count == at:
                    task.cancel()
                    break
                count += 1
            await asyncio.sleep(0)
        finished = task.done()
        with contextlib.suppress(asyncio.CancelledError, rlock.Lost):
            await task
        del task
        if finished:
            return at
        await check(at)
        at += 1


class Client:
    def __init__(self, world, locks, key):  # noqa: F811
        self.world, self.locks, self.key = world, locks, key

    async def acquire(self):
        hold = await self.locks.acquire(self.key)
        await asyncio.sleep(0)
        await hold.release()

    async def wait(self):
        hold = await self.locks.acquire(self.key, wait=20)
        await hold.release()

    async def scope(self):
        async with self.locks.hold(self.key, wait=20) as hold:
            await asyncio.sleep(0)
            await hold.renew()

    async def again(self):
        async with self.locks.hold(self.key) as hold:
            async with hold.again():
                await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def lost(self):
        async with self.locks.hold(self.key) as hold:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(hold.lost.wait(), 0.01)

    async def wanted(self):
        async with self.locks.hold(self.key) as hold:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(hold.wanted.wait(), 0.01)

    async def taken(self):
        with contextlib.suppress(rlock.NotAcquired):
            await self.locks.acquire(f"{self.key}:stands", wait=0.02)

    async def gathered(self):
        await asyncio.gather(self.wait(), self.wait(), self.scope())

    async def timed(self):
        await asyncio.wait_for(self.wait(), 20)


def in_tasks(world):  # noqa: F811
    clients = [redis.asyncio.Redis(port=server.port) for server in world.servers]
    return rlock.asyncio.Quorum(clients) if len(clients) > 1 else rlock.asyncio.Locks(clients[0])


@pytest.mark.parametrize("what", ["acquire", "wait", "scope", "again", "lost", "wanted", "taken", "gathered", "timed"])
def test_a_cancellation_at_every_suspension(world, key, what):  # noqa: F811
    async def main():
        async with in_tasks(world) as locks:
            standing = await locks.acquire(f"{key}:stands")
            tried = Client(world, locks, key)

            async def check(at):
                assert await asyncio.to_thread(until, lambda: world.is_free(key)), at
                assert world.has(standing, f"{key}:stands"), at

            assert await at_every_suspension(getattr(tried, what), check) > 0
            await (await locks.acquire(f"{key}:new")).release()
            await standing.release()
        assert await asyncio.to_thread(until, world.empty)

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("of_a_job", [False, True])
def test_a_cancellation_at_every_suspension_of_giving_way(one_server, key, of_a_job):
    async def main():
        async with in_tasks(world) as locks:
            with world.make() as others:
                waiters = []
                acquire = locks.job().acquire if of_a_job else locks.acquire

                async def run():
                    async with await acquire(key, wait=20) as hold:
                        waiters.append(waits_for(others, key))
                        assert await hold.wanted.wait()
                        assert await hold.give_way(least=0)
                        await asyncio.sleep(0)

                async def check(at):
                    if waiters:
                        await asyncio.to_thread(waiters.pop().result)
                    assert await asyncio.to_thread(until, lambda: world.is_free(key) and world.empty()), at

                assert await at_every_suspension(run, check) > 2
                await (await acquire(key)).release()

    world = one_server
    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_cancellation_of_the_first_request_and_of_close(world, key):  # noqa: F811
    async def main():
        async def run():
            async with in_tasks(world) as locks:
                async with locks.hold(key, wait=20):
                    await asyncio.sleep(0)

        async def check(at):
            assert await asyncio.to_thread(until, world.empty), at

        assert await at_every_suspension(run, check) > 1

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("connects", [False, True])
def test_an_exception_in_the_event_loop(world, key, connects):  # noqa: F811
    """At every fifth line of what the loop itself runs of the client: nobody waits for what does not
    come, and what was held is lost, or is held."""
    if len(world.servers) > 1:
        pytest.skip("as with one server")
    loop, missed = asyncio.new_event_loop(), []
    loop.set_exception_handler(lambda loop, context: missed.append(context))

    async def run():
        first = await locks.acquire(key, lease=5)
        waits = asyncio.create_task(locks.acquire(key, wait=60, lease=5))
        await asyncio.sleep(0.005)
        await first.release()
        await (await waits).release()

    async def check(where):
        for name in (key, f"{key}:new"):
            await (await locks.acquire(name, wait=20)).release()
        assert await asyncio.to_thread(until, world.empty), where

    locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=world.servers[0].port), timeout=5)
    loop.run_until_complete(run())
    at, struck = 1, True
    while struck:
        if connects:
            world.servers[0].say("CLIENT KILL TYPE pubsub")
        tracer = Tracer(at)
        tried = loop.create_task(run())
        sys.settrace(tracer)
        try:
            done, _ = loop.run_until_complete(asyncio.wait([tried], timeout=30))
        finally:
            sys.settrace(None)
        assert done, tracer.where
        struck, at = tracer.where, at + 5
        with contextlib.suppress(Stop, rlock.Lost, rlock.ConnectionError):
            tried.result()
        del tried, done
        missed.clear()
        collect()
        loop.run_until_complete(check(tracer.where))
    loop.run_until_complete(locks.close())
    loop.close()


def test_a_task_that_is_forgotten(world, key):  # noqa: F811
    """A coroutine or an asynchronous generator that the garbage collector ends."""

    async def main():
        async with in_tasks(world) as locks:

            async def work():
                async with locks.hold(key):
                    await asyncio.sleep(60)

            work_once = work()
            future = work_once.send(None)  # by hand, as no task has it
            while not future.done():
                await asyncio.sleep(0)
            with contextlib.suppress(StopIteration):
                work_once.send(None)
            del work_once, future
            collect()
            assert await asyncio.to_thread(until, lambda: world.is_free(key))

            async def pieces():
                async with locks.hold(key) as hold:
                    yield hold

            cycle = [pieces()]
            await cycle[0].__anext__()
            cycle.append(cycle)
            del cycle
            collect()
            assert await asyncio.to_thread(until, lambda: world.is_free(key))
            await locks.acquire(key)  # and a hold
            assert await asyncio.to_thread(until, lambda: world.is_free(key))
            await (await locks.acquire(key, wait=10)).release()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_callbacks_of_tasks(world, key):  # noqa: F811
    """The event loop calls them, and none while the client is in the middle of something."""

    async def main():
        async with in_tasks(world) as locks:
            names = [f"{key}:{number}" for number in range(3)]
            holds = [await locks.acquire(name) for name in names]
            other, seen, tasks = await locks.acquire(f"{key}:other"), [], []
            holds[0].lost.add_callback(lambda reason: tasks.append(asyncio.create_task(other.release())))
            holds[1].lost.add_callback(lambda reason: 1 / 0)
            holds[2].lost.add_callback(lambda reason: seen.append((reason, holds[2].lost.reason)))
            errors = []
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context["exception"]))
            for name in names:
                world.lose(name)
            while not (seen and tasks and errors):
                await asyncio.sleep(0.001)
            await tasks[0]
            assert seen == [("forced", "forced")] and isinstance(errors[0], ZeroDivisionError)
            await (await locks.acquire(f"{key}:new")).release()

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("debug", [False, True])
def test_what_is_no_callback_of_tasks(world, key, debug):  # noqa: F811
    async def task(reason):
        pass

    async def main():
        async with in_tasks(world) as locks:
            other, hold = await locks.acquire(f"{key}:other"), await locks.acquire(key)
            for callback in (None, 5, task):
                with pytest.raises(TypeError, match="callback"):
                    hold.lost.add_callback(callback)
            world.lose(key)
            assert await hold.lost.wait() == "forced" and world.has(other, f"{key}:other")
            with pytest.raises(rlock.Lost):
                async with hold:
                    raise AssertionError("without the lock")
            async with await locks.acquire(key) as hold:
                pass
            with pytest.raises(rlock.Lost, match="released"):
                async with hold:
                    raise AssertionError("without the lock")

    asyncio.run(asyncio.wait_for(main(), 60), debug=debug)


def test_hold_as_a_decorator(world, key):  # noqa: F811
    """Of what has run when it returns: what only begins would do its work without the lock."""

    def generator():
        yield

    async def generator_of_tasks():
        yield

    generators = generator, generator_of_tasks
    with world.make() as locks:

        @locks.hold(key, wait=20)
        def work():
            return world.is_free(key)

        assert work() is False and work() is False
        assert until(lambda: world.is_free(key))

        async def task(): ...

        for function in (task, *generators):
            with pytest.raises(TypeError, match="only begins when it is called"):
                locks.hold(key)(function)

    async def main():
        async with in_tasks(world) as locks:

            @locks.hold(key, wait=20)
            async def work():
                await asyncio.sleep(0)
                return world.is_free(key)

            assert await asyncio.gather(work(), work(), work()) == [False] * 3
            for function in generators:
                with pytest.raises(TypeError, match="only begins when it is called"):
                    locks.hold(key)(function)
            scope = locks.hold(key, wait=20)
            async with scope:
                with pytest.raises(RuntimeError, match="once"):
                    async with scope:
                        pass

    asyncio.run(asyncio.wait_for(main(), 60))
    assert until(world.empty)

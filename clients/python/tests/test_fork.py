"""A child of a fork holds nothing, and leaves its parent alone."""

import asyncio
import json
import math
import multiprocessing
import os
import signal

import redis
import redis.asyncio
from servers import InThread, until

import rlock
import rlock.asyncio


def in_child(look):
    ours, its = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(its, json.dumps(look()).encode())
        except BaseException as error:
            os.write(its, json.dumps(repr(error)).encode())
        os._exit(0)
    os.close(its)
    with os.fdopen(ours) as seen:
        answer = json.loads(seen.read())
    os.waitpid(child, 0)
    return answer


def test_a_job_is_another_one_in_the_child(server, locks, key):
    job = locks.job()
    job.acquire(f"{key}:before").release()

    def look():
        with job.hold(key, wait=20) as hold:
            return [job.owner, hold.owner, str(os.getpid()), not server.is_free(key)]

    owner, of_hold, pid, held = in_child(look)
    assert held and owner == of_hold != job.owner and owner.split(":")[-2] == pid
    hold = job.acquire(key)
    assert in_child(lambda: job.owner) != job.owner == hold.owner

    def take():
        try:
            job.acquire(key)
        except rlock.NotAcquired:
            return "not acquired"

    assert in_child(take) == "not acquired"
    hold.release()


def test_threads(server, locks, key):
    hold = locks.acquire(key, lease=4)
    server.say(f"RLOCK.ACQUIRE {key}:taken other 60000")
    waits = InThread(lambda: locks.acquire(f"{key}:taken", wait=30))
    assert until(lambda: server.waiters(f"{key}:taken") == 1)

    def look():
        reason = hold.lost.reason
        try:
            hold.release()
        except rlock.Lost as lost:
            reason += f", {lost.reason}"
        with locks.hold(f"{key}:child", wait=20):
            return reason

    for _ in range(20):
        assert in_child(look) == "fork, fork"
    assert hold.lost.reason is None and not server.is_free(key)
    server.say(f"RLOCK.RELEASE {key}:taken other")
    waits.result().release()
    hold.release()
    assert until(lambda: server.is_free(f"{key}:child"))


def test_fork_while_threads_are_busy(server, locks, key):
    stop = []

    def work(number):
        while not stop:
            with locks.hold(f"{key}:{number}"):
                pass

    threads = [InThread(lambda number=number: work(number)) for number in range(4)]
    for _ in range(20):
        assert in_child(lambda: bool(locks.acquire(f"{key}:child", wait=10))) is True
    stop.append(True)
    for thread in threads:
        thread.result()


def test_the_connection_closes_with_the_parent_though_a_child_lives(server, key):
    def parent(pipe):
        locks = rlock.Locks(redis.Redis(port=server.port))
        hold = locks.acquire(key, lease=60)
        ours, its = os.pipe()
        if os.fork() == 0:
            os.close(its)
            os.read(ours, 1)  # lives until the test ends
            os._exit(0)
        pipe.send("held")
        pipe.recv()
        hold.release()
        os._exit(0)

    ours, its = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=parent, args=(its,))
    process.start()
    assert ours.recv() == "held" and not server.is_free(key)
    process.kill()
    process.join()
    assert until(lambda: server.is_free(key))


def test_tasks(server, key):
    async def main():
        async with rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port)) as locks:
            hold = await locks.acquire(key, lease=4)

            async def take():
                async with locks.hold(f"{key}:child", wait=20):
                    return hold.lost.reason

            def look():
                asyncio._set_running_loop(None)
                return asyncio.new_event_loop().run_until_complete(take())

            for _ in range(5):
                assert in_child(look) == "fork"
            await asyncio.sleep(4.5)
            assert hold.lost.reason is None and not server.is_free(key)
            await hold.release()

    asyncio.run(main())


def test_a_signal_handler_that_forks_in_a_wait(server, locks, key):
    """What the parent waits for, the child does not wait for."""
    server.say(f"RLOCK.ACQUIRE {key} other 60000")
    standing, sticky = locks.acquire(f"{key}:stands", lease=4), locks.sticky(key, wait=60)
    waits = [
        lambda: locks.acquire(key, wait=60),
        lambda: locks.acquire(key, wait=math.inf),
        lambda: sticky.use().__enter__(),
        lambda: standing.lost.wait(),
        lambda: standing.wanted.wait(),
    ]
    for number, wait in enumerate(waits):
        children = []
        ours, its = os.pipe()

        def fork(*_, children=children):
            children.append(os.fork())
            if children[0]:
                raise Forked  # the parent waits no longer than this test

        before = signal.signal(signal.SIGALRM, fork)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            wait()
            came = "it ended"
        except Forked:
            came = "the parent"
        except rlock.ConnectionError:
            came = "none of the child's"
        finally:
            signal.signal(signal.SIGALRM, before)
        if children == [0]:
            try:
                with locks.hold(f"{key}:{number}", wait=20):
                    os.write(its, came.encode())
            finally:
                os._exit(0)
        os.close(its)
        with os.fdopen(ours) as seen:
            answer = seen.read()
        os.waitpid(children[0], 0)
        assert came == "the parent" and answer == ("none of the child's" if number < 3 else "it ended"), number
    standing.release()
    assert until(lambda: server.waiters(key) == 0)


class Forked(Exception):
    pass

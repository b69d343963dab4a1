"""The face for asyncio."""

import asyncio
import contextlib
import math
import socket
import sys
import threading
import time

import pytest
import redis.asyncio
from servers import collect, until

import rlock
import rlock.asyncio


@contextlib.asynccontextmanager
async def opened(server, **options):
    async with rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port), **options) as locks:
        yield locks


async def soon(condition, seconds=20):
    return await asyncio.to_thread(until, condition, seconds)


def run(work):
    asyncio.run(asyncio.wait_for(work, 60))


def test_a_hold(server, key):
    async def main():
        async with opened(server) as locks:
            async with locks.hold(key, wait=10) as hold:
                assert server.info(key)[b"holders"][0][b"token"] == hold.token
                with pytest.raises(rlock.NotAcquired):
                    await locks.acquire(key)
                with pytest.raises(rlock.NotAcquired):
                    await locks.acquire(key, wait=0.2)
                await hold.renew(20)
                async with hold.again():
                    pass
                assert not server.is_free(key) and not hold.lost.is_set()
            assert server.is_free(key)
            await hold.release()

    run(main())


def test_a_loss_cancels_the_body(server, key):
    async def main():
        async with opened(server) as locks:
            with pytest.raises(rlock.Lost) as caught:
                async with locks.hold(key):
                    server.say(f"RLOCK.FORCE {key}")
                    await asyncio.sleep(60)
            assert caught.value.reason == "forced"
            # Nothing of it is left in the task.
            await asyncio.sleep(0)
            if sys.version_info >= (3, 11):
                assert asyncio.current_task().cancelling() == 0

    run(main())


def test_a_loss_in_an_inner_scope_leaves_the_outer_one(server, key):
    async def main():
        async with opened(server) as locks, locks.hold(f"{key}:outer") as outer:
            with pytest.raises(rlock.Lost):
                async with locks.hold(key):
                    server.say(f"RLOCK.FORCE {key}")
                    await asyncio.sleep(60)
            assert outer.lost.reason is None
            await asyncio.sleep(0.01)

    run(main())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="nobody can tell two cancellations apart")
def test_an_outer_cancellation_stays_one(server, key):
    async def body(locks, held):
        async with locks.hold(key):
            held.set()
            await asyncio.sleep(60)

    async def main():
        async with opened(server) as locks:
            for lose in (False, True):
                held = asyncio.Event()
                task = asyncio.create_task(body(locks, held))
                await held.wait()
                if lose:  # both at once: the task is cancelled, as was asked for
                    loop = locks._loops.here()
                    core = loop.sessions[0].core
                    held_state = next(iter(core.holds))
                    loop.post(lambda now: core._lost(held_state, "forced", now))
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            server.say(f"RLOCK.FORCE {key}")

    run(main())


def test_time_out_around_a_scope(server, key):
    async def main():
        async with opened(server) as locks:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(body(locks), 2)
            assert server.is_free(key)

    async def body(locks):
        async with locks.hold(key):
            await asyncio.sleep(60)

    run(main())


def test_a_body_that_closes_the_locks(server, key):
    async def main():
        locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port))
        with pytest.raises(rlock.Lost) as caught:
            async with locks.hold(key):
                await locks.close()
                await asyncio.sleep(60)
        assert caught.value.reason == "closed"
        with pytest.raises(rlock.Lost):
            async with rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port)) as locks, locks.hold(key):
                await locks.close()
        await asyncio.sleep(0.01)  # no cancellation comes late

    run(main())


def test_the_bodys_own_error_comes_out(server, key):
    async def main():
        async with opened(server) as locks:
            with pytest.raises(ZeroDivisionError):
                async with locks.hold(key):
                    try:
                        server.say(f"RLOCK.FORCE {key}")
                        await asyncio.sleep(60)
                    finally:
                        raise ZeroDivisionError

    run(main())


def test_cancel_reaches_the_server(server, key):
    async def main():
        async with opened(server) as locks:
            server.say(f"RLOCK.ACQUIRE {key} other 60000")
            task = asyncio.create_task(locks.acquire(key, wait=math.inf))
            assert await soon(lambda: server.waiters(key) == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await soon(lambda: server.waiters(key) == 0)
            server.say(f"RLOCK.RELEASE {key} other")

    run(main())


def test_cancel_and_grant_cross(server, key):
    async def main():
        admin = redis.asyncio.Redis(port=server.port)
        async with opened(server) as locks:
            for _ in range(200):
                await admin.execute_command("RLOCK.ACQUIRE", key, "other", 60000)
                task = asyncio.create_task(locks.acquire(key, wait=20))
                await asyncio.sleep(0)
                freed = asyncio.create_task(admin.execute_command("RLOCK.RELEASE", key, "other"))
                while not freed.done():
                    await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await (await task).release()
                assert await soon(lambda: server.is_free(key))
        await admin.aclose()

    run(main())


def test_release_goes_on_when_its_task_is_cancelled(server, key):
    async def main():
        async with opened(server) as locks:
            hold = await locks.acquire(key)
            task = asyncio.create_task(hold.release())
            await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert await soon(lambda: server.is_free(key))

    run(main())


def test_at_the_end_of_the_loop_locks_are_released(server, key):
    kept = []

    async def worker(locks, name, entered):
        async with locks.hold(name, watchdog=False, lease=60):
            entered.set()
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.2)
                kept.append(not server.is_free(name))  # while it cleans up it has the lock

    async def main():
        locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port))
        for number in range(3):
            entered = asyncio.Event()
            kept.append(asyncio.create_task(worker(locks, f"{key}:{number}", entered)))
            await entered.wait()
        kept.clear()
        await locks.acquire(f"{key}:dropped", watchdog=False, lease=60)

    run(main())
    assert kept == [True] * 3
    assert all(server.is_free(f"{key}:{name}") for name in (0, 1, 2, "dropped"))


def test_one_locks_in_several_loops(server, key):
    locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port))

    async def main():
        async with locks.hold(key):
            pass

    run(main())
    run(main())


def test_one_locks_in_several_loops_at_once(own_server, key):
    """Each has a session, and one only; close ends those of all."""
    locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=own_server.port))
    loops = [asyncio.new_event_loop() for _ in range(2)]
    threads = [threading.Thread(target=loop.run_forever) for loop in loops]
    for thread in threads:
        thread.start()

    def do(number, work):
        return asyncio.run_coroutine_threadsafe(work, loops[number]).result(60)

    def sessions():
        return [client for client in own_server.admin.client_list() if client["name"].startswith("rlock-python")]

    for number in (0, 1) * 5:
        do(number, do(number, locks.acquire(key)).release())
    assert len(sessions()) == 2
    hold = do(0, locks.acquire(key))
    do(1, hold.renew())
    do(1, hold.release())
    holds = [do(number, locks.acquire(f"{key}:{number}")) for number in (0, 1)]
    do(1, locks.close())
    assert [hold.lost.reason for hold in holds] == ["closed"] * 2
    assert until(lambda: not sessions() and all(own_server.is_free(f"{key}:{number}") for number in (0, 1)))
    for loop, thread in zip(loops, threads):
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_a_hold_whose_loop_has_ended(server, key):
    """Nobody is there to answer: its release, and close, say so at once."""
    locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port), timeout=60)
    holds = []

    async def main():
        holds.append(await locks.acquire(key))

    run(main())
    with pytest.raises(rlock.Lost, match="closed"):
        asyncio.run(asyncio.wait_for(holds[0].release(), 20))
    asyncio.run(asyncio.wait_for(locks.close(), 20))


def test_all_tasks_are_cancelled(server, key):
    """Also the one that connects, before it has begun: another one connects."""

    async def main():
        async with opened(server) as locks:
            ours = asyncio.create_task(locks.acquire(key, wait=20))
            await asyncio.sleep(0)
            others = asyncio.all_tasks() - {ours, asyncio.current_task()}
            connects = [task for task in others if task.get_name() == "rlock"]
            assert connects
            for task in connects:
                task.cancel()
            await (await ours).release()

    run(main())


def test_close_while_it_connects(key):
    """No task is left over that connects for nobody."""

    async def main():
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=silent.getsockname()[1]), timeout=60)
            waits = asyncio.create_task(locks.acquire(key, wait=60))
            await asyncio.to_thread(silent.accept)
            await locks.close()
            with pytest.raises(rlock.ConnectionError, match="closed"):
                await waits
            assert not [task for task in asyncio.all_tasks() if task.get_name() == "rlock"]

    asyncio.run(asyncio.wait_for(main(), 40))


def test_deadlock(server, key):
    async def main():
        async with opened(server) as locks:
            ann, bob = locks.job(), locks.job()
            async with bob.hold(f"{key}:2"):
                first = await ann.acquire(f"{key}:1")
                waits = asyncio.create_task(ann.acquire(f"{key}:2", wait=20))
                assert await soon(lambda: server.waiters(f"{key}:2") == 1)
                with pytest.raises(rlock.Deadlock):
                    await bob.acquire(f"{key}:1", wait=20)
            await (await waits).release()
            await first.release()

    run(main())


def test_lost_wait(server, key):
    async def main():
        async with opened(server) as locks:
            hold = await locks.acquire(key)
            waits = asyncio.create_task(hold.lost.wait())
            await asyncio.sleep(0.01)
            server.say(f"DEL {key}")
            assert await waits == "deleted"

    run(main())


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_loop_that_is_closed_under_an_open_session(server, key, caplog):
    locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port))
    loop = asyncio.new_event_loop()
    held = loop.run_until_complete(locks.acquire(key))
    waiting = loop.create_task(locks.acquire(key, wait=60))
    loop.run_until_complete(asyncio.sleep(0))
    waiting.cancel()
    loop.run_until_complete(asyncio.wait([waiting]))
    loop.close()
    del held, waiting, locks, loop
    collect()
    assert not caplog.records


def test_a_program_that_blocked_its_event_loop_reads_first(server, key):
    """The server has answered, and renewed the lease, meanwhile."""

    async def main():
        async with opened(server, timeout=4) as locks:
            hold = await locks.acquire(key, lease=5)
            asked = asyncio.create_task(locks.acquire(f"{key}:2"))
            renewed = asyncio.create_task(hold.renew())
            await asyncio.sleep(0)
            time.sleep(7)
            assert hold.lost.reason is None
            await renewed
            await (await asked).release()
            await asyncio.sleep(6)
            assert hold.lost.reason is None and not server.is_free(key)
            await hold.release()

    run(main())

"""Many at once; prints what that takes (pytest -s)."""

import asyncio
import gc
import os
import pathlib
import threading
import time

import redis.asyncio
from servers import InThread, until

import rlock.asyncio


def resident():
    gc.collect()
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_threads_wait(server, locks, key):
    threading.stack_size(256 * 1024)
    server.say(f"RLOCK.ACQUIRE {key} other 600000")
    done = []

    def take():
        with locks.hold(key, wait=600):
            done.append(1)

    before = resident()
    threads = [InThread(take) for _ in range(1000)]
    assert until(lambda: server.waiters(key) == 1000, 120)
    print(f"\n1,000 threads that wait: {(resident() - before) / 1e6:.1f} MB")
    clients = server.admin.info("clients")["connected_clients"]
    assert clients < 10
    began = time.monotonic()
    server.say(f"RLOCK.RELEASE {key} other")
    for thread in threads:
        thread.result(600)
    assert len(done) == 1000
    print(f"1,000 hand-overs: {time.monotonic() - began:.2f} s")


def test_ten_thousand_holds_and_waits_on_one_connection(server, key):
    many = 10_000

    async def main():
        async with rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port)) as locks:
            await (await locks.acquire(key)).release()
            start, began = resident(), time.monotonic()
            holds = []
            for at in range(0, many, 500):
                batch = [locks.acquire(f"{key}:{number}", lease=600) for number in range(at, at + 500)]
                holds += await asyncio.gather(*batch)
            took, held = time.monotonic() - began, resident()
            print(f"\n{many} holds in {took:.1f} s: {(held - start) / many:.0f} bytes a hold")
            waits = [
                asyncio.create_task(locks.acquire(f"{key}:{number}", wait=600, lease=600)) for number in range(many)
            ]
            queued = lambda: int(server.admin.info("rlock")["rlock_queued"]) >= many  # noqa: E731
            while not queued():
                await asyncio.sleep(0.05)
            waiting = resident()
            print(f"{many} waits: {(waiting - held) / many:.0f} bytes a wait, with its task")
            print(f"the process with both: {waiting / 1e6:.0f} MB")
            began = time.monotonic()
            await asyncio.gather(*(hold.release() for hold in holds))
            await asyncio.gather(*(hold.release() for hold in await asyncio.gather(*waits)))
            print(f"{many} hand-overs and releases: {time.monotonic() - began:.1f} s")

    asyncio.run(main())


def test_ten_thousand_holds_of_threads(server, locks, key):
    many = 10_000
    before = resident()
    holds = [locks.acquire(f"{key}:{number}", lease=600) for number in range(many)]
    print(f"\n{many} holds (threads): {(resident() - before) / many:.0f} bytes a hold")
    assert sum(hold.lost.is_set() for hold in holds) == 0
    locks.close()
    assert all(hold.lost.reason == "closed" for hold in holds)
    assert until(lambda: int(server.admin.info("rlock")["rlock_held"]) == 0)

"""The benchmark's program in Python: bench.py SIDE PORT WORKERS. Its orders stand in
bench/clients/language.rs."""

import asyncio
import gc
import math
import os
import sys
import time

import redis.asyncio as redis

import rlock.asyncio

KEY = "bench:lock"
LAST = "bench:last"


class Ours:
    """One session for all workers."""

    def __init__(self, port):
        self.client = redis.Redis(port=port)
        self.locks = rlock.asyncio.Locks(self.client)

    async def warm_up(self):
        async with self.locks.hold(f"warm:{os.getpid()}"):
            pass

    def worker(self):
        return self.client, lambda: self.locks.hold(KEY, wait=math.inf)


class RedisPy:
    """A client for each worker, with redis-py's defaults."""

    def __init__(self, port):
        self.port = port

    async def warm_up(self):
        async with redis.Redis(port=self.port) as client, client.lock(f"warm:{os.getpid()}"):
            pass

    def worker(self):
        client = redis.Redis(port=self.port)
        return client, lambda: client.lock(KEY)


class Program:
    def __init__(self, side, port, workers):
        self.side = {"rlock": Ours, "redis-py": RedisPy}[side](port)
        self.port = port
        self.workers = workers
        self.count = 0
        self.tasks = []

    async def go(self):
        self.tasks = [asyncio.create_task(self.contend(n)) for n in range(self.workers)]
        return 0

    async def contend(self, number):
        client, hold = self.side.worker()
        me = f"{os.getpid()}:{number}".encode()
        while True:
            async with hold():
                self.count += await client.set(LAST, me, get=True) != me

    async def stop(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        return 0

    async def pairs(self, ms):
        async def pair():
            hold = await self.side.locks.acquire("bench:free")
            await hold.release()

        return await timed(pair, ms)

    async def pings(self, ms):
        client = redis.Redis(port=self.port, single_connection_client=True)
        return await timed(client.ping, ms)

    async def crowd(self, size):
        other = rlock.asyncio.Locks(self.side.client)
        taken = [other.acquire(f"taken:{n}") for n in range(size)]
        taken = await asyncio.gather(*taken)
        before = memory()
        holds = await asyncio.gather(*(self.side.locks.acquire(f"held:{n}") for n in range(size)))
        wait = self.side.locks.acquire
        waits = [asyncio.create_task(wait(f"taken:{n}", wait=math.inf)) for n in range(size)]
        while int((await self.side.client.info("rlock"))["rlock_queued"]) < size:
            await asyncio.sleep(0.01)
        grown = memory() - before
        assert len(holds) == len(waits) == len(taken)
        self.tasks = waits
        return grown // (2 * size)


def memory():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def timed(act, ms):
    """ns for each."""
    begin, count = time.perf_counter(), 0
    while time.perf_counter() < begin + ms / 1000:
        await act()
        count += 1
    return int((time.perf_counter() - begin) * 1e9 / count)


async def main():
    side, port, workers = sys.argv[1:]
    program = Program(side, int(port), int(workers))
    await program.side.warm_up()
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order, *number = line.split()
        if order == "count":
            reply = program.count
        else:
            reply = await getattr(program, order)(*map(int, number))
        print(reply, flush=True)


asyncio.run(main())

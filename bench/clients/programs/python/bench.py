"""The benchmark's program in Python: bench.py SIDE PORT WORKERS TURNS MS. Its orders stand in
bench/clients/language.rs."""

import asyncio
import gc
import math
import os
import sys
from statistics import median_low as median
from time import monotonic_ns as clock

import redis.asyncio as redis

import rlock.asyncio

KEY = "bench:lock"


class Ours:
    """One session for all workers."""

    def __init__(self, port):
        self.client = redis.Redis(port=port)
        self.locks = rlock.asyncio.Locks(self.client)

    def worker(self):
        return lambda key: self.locks.hold(key, wait=math.inf)

    async def pair(self):
        hold = await self.locks.acquire("bench:free")
        await hold.release()

    async def close(self):
        await self.locks.close()
        await self.client.aclose()


class RedisPy:
    """A client for each worker, with redis-py's defaults."""

    def __init__(self, port):
        self.port = port
        self.clients = []

    def worker(self):
        self.clients.append(redis.Redis(port=self.port))
        return self.clients[-1].lock

    async def pair(self):
        lock = self.clients[0].lock("bench:other", timeout=10)
        await lock.acquire(blocking=False)
        await lock.release()

    async def close(self):
        for client in self.clients:
            await client.aclose()


class Program:
    def __init__(self, side, port, workers):
        self.side = {"rlock": Ours, "redis-py": RedisPy}[side](port)
        self.port = port
        self.workers = [self.side.worker() for _ in range(workers)]
        self.had = []
        self.tasks = []

    async def warm_up(self, turns, ms):
        end = clock() + ms * 1_000_000

        async def contend(hold):
            nonlocal turns
            while turns > 0 and clock() < end:
                async with hold(f"warm:{os.getpid()}"):
                    turns -= 1

        await asyncio.gather(contend(self.workers[0]), contend(self.side.worker()))

    async def go(self):
        for number, hold in enumerate(self.workers):
            self.tasks.append(asyncio.create_task(self.contend(number, hold)))
        return 0

    async def contend(self, number, hold):
        while True:
            async with hold(KEY):
                self.had += number, clock(), clock()

    async def turns(self):
        return " ".join(map(str, self.had))

    async def pairs(self, ms):
        return await timed(self.side.pair, ms)

    async def pings(self, ms):
        async with redis.Redis(port=self.port, single_connection_client=True) as client:
            return await timed(client.ping, ms)

    async def uses(self, ms):
        sticky = self.side.locks.sticky("bench:sticky")

        async def use():
            async with sticky.use():
                pass

        return await timed(use, ms)

    async def sets(self, ms):
        async with redis.Redis(port=self.port, single_connection_client=True) as client:

            async def pair():
                await client.set("bench:set", "owner", nx=True, px=10_000)
                await client.delete("bench:set")

            return await timed(pair, ms)

    def shared(self, sticky):
        if sticky:
            return self.side.locks.sticky("bench:shared").use
        return lambda: self.side.locks.hold("bench:shared", wait=math.inf)

    async def often(self, sticky):
        take = self.shared(sticky)

        async def goes_on():
            while True:
                async with take():
                    pass
                await asyncio.sleep(0.002)

        self.tasks.append(asyncio.create_task(goes_on()))
        return 0

    async def shares(self, sticky, count):
        take, took = self.shared(sticky), []
        for _ in range(count):
            begin = clock()
            async with take():
                pass
            took.append(clock() - begin)
            await asyncio.sleep(0.002)
        return median(took)

    async def takes(self, count):
        took = []
        for _ in range(count):
            begin = clock()
            hold = await self.side.locks.acquire("bench:shared", wait=math.inf)
            took.append(clock() - begin)
            await hold.release()
            await asyncio.sleep(0.010)
        return median(took)

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

    async def close(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.side.close()


def memory():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def timed(act, ms):
    """ns for each."""
    begin, count = clock(), 0
    while clock() < begin + ms * 1_000_000:
        await act()
        count += 1
    return (clock() - begin) // count


async def main():
    side, *numbers = sys.argv[1:]
    port, workers, turns, ms = map(int, numbers)
    program = Program(side, port, workers)
    await program.warm_up(turns, ms)
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order, *number = line.split()
        print(await getattr(program, order)(*map(int, number)), flush=True)
    await program.close()


asyncio.run(main())

import asyncio

import redis.asyncio
import rlock.asyncio


async def main() -> None:
    async with rlock.asyncio.Locks(redis.asyncio.Redis()) as locks:
        async with locks.hold("jobs", wait=10) as hold:
            print("I have the lock, with token", hold.token)
            await asyncio.sleep(0.1)  # the work: it is cancelled if the lock is lost
    print("released")


asyncio.run(main())

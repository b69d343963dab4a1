"""What hurts clients without QUEUE, NOTIFY, ONCE and CANCEL does not hurt redis-py's asyncio."""
import asyncio
import sys
import time
import uuid

import redis
import redis.asyncio

import report
from aio_session import Session

PORT, LOSING = int(sys.argv[1]), int(sys.argv[2])
LEASE = 60_000

admin = redis.asyncio.Redis(port=PORT)


def owner():
    return f"check:{uuid.uuid4().hex}"


async def take(key, holder="other"):
    await admin.execute_command("RLOCK.ACQUIRE", key, holder, LEASE)


async def give(key, holder="other"):
    return await admin.execute_command("RLOCK.RELEASE", key, holder)


async def info(key):
    return await admin.execute_command("RLOCK.INFO", key)


async def waiters(key):
    return (await info(key))[b"waiters"]


async def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (good := await condition()) and time.monotonic() < end:
        await asyncio.sleep(0.01)
    return good


async def wait_for_waiters(key, many):
    async def there():
        return await waiters(key) == many

    return await until(there)


async def many_waits(number):
    session, keys = await Session().open(admin), [f"many:{i}" for i in range(200)]
    for key in keys:
        await take(key)
    owners = {key: owner() for key in keys}
    tasks = [asyncio.create_task(session.acquire(key, owners[key], LEASE, 60_000)) for key in keys]
    for key in keys:
        await wait_for_waiters(key, 1)
    connections = (await admin.info("clients"))["connected_clients"]
    beside = await session.call("SET", "beside", "1")
    for key in keys:
        await give(key)
    tokens = {token for token, _ in await asyncio.wait_for(asyncio.gather(*tasks), 20)}
    freed = [await session.call("RLOCK.RELEASE", key, owners[key]) for key in keys].count(0)
    await session.close()
    report.line(
        number,
        "200 waits on one connection, beside other commands",
        f"SET {beside}, {len(tokens)} granted, {freed} released, {connections} connections in all",
        len(tokens) == 200 and freed == 200 and connections <= 3,
    )


async def place(key, mine):
    """Where in the queue, and by which connection."""
    queue = await admin.execute_command("RLOCK.WAITERS", key)
    places = [(i, w[b"client-id"]) for i, w in enumerate(queue) if w[b"owner"].decode() == mine]
    return places[0] if places else (None, None)


async def own_time_out(number):
    session = await Session().open(admin)
    await retried(number, session)
    await blocked_for_longer(number, session)
    await session.close()


async def retried(number, session):
    key, mine, behind = "again", owner(), owner()
    await take(key)
    first = asyncio.create_task(session.acquire(key, mine, LEASE, 30_000))
    await wait_for_waiters(key, 1)
    last = asyncio.create_task(session.acquire(key, behind, LEASE, 30_000))
    await wait_for_waiters(key, 2)
    again = asyncio.create_task(session.acquire(key, mine, LEASE, 30_000))
    older = (await asyncio.gather(first, return_exceptions=True))[0]
    at, _ = await place(key, mine)
    await give(key)
    token, _ = await asyncio.wait_for(again, 5)
    holds = (await info(key))[b"holders"][0][b"holds"]
    await give(key, mine)
    after, _ = await asyncio.wait_for(last, 5)
    report.line(
        number,
        "a queued request that is retried keeps its place",
        f"the older: {str(older)[:20]}; place {at}, token {token}, {holds} hold, the one behind {after}",
        "SUPERSEDED" in str(older) and at == 0 and holds == 1 and after > token,
    )


async def blocked_for_longer(number, session):
    """redis-py waits 5 s for a reply, closes its connection, and sends the command again."""
    key, mine, behind = "block", owner(), owner()
    await take(key)
    words = ("RLOCK.ACQUIRE", key, mine, LEASE, "BLOCK", 10_000, "ONCE")
    blocked = asyncio.create_task(redis.asyncio.Redis(port=PORT).execute_command(*words))
    await wait_for_waiters(key, 1)
    last = asyncio.create_task(session.acquire(key, behind, LEASE, 30_000))
    _, first = await place(key, mine)

    async def sent_again():
        return (await place(key, mine))[1] not in (first, None)

    again = await until(sent_again)
    at, _ = await place(key, mine)
    await give(key)
    token = await asyncio.wait_for(blocked, 20)
    holds = (await info(key))[b"holders"][0][b"holds"]
    report.line(
        number,
        "BLOCK longer than the time-out is sent again by a new connection: in its place",
        f"sent again: {again}, place {at}, token {token}, {holds} hold",
        again and at == 0 and token > 0 and holds == 1,
    )
    await give(key, mine)
    await asyncio.gather(last, return_exceptions=True)


async def lost_reply(number):
    mine = owner()
    words = ("RLOCK.ACQUIRE", "cut:once", mine, LEASE, "ONCE")
    token = await redis.asyncio.Redis(port=LOSING).execute_command(*words)
    holder = (await info("cut:once"))[b"holders"][0]
    report.line(
        number,
        "the reply is lost, the request that is retried has the token",
        f"token {token}, {holder[b'holds']} hold",
        holder[b"token"] == token and holder[b"holds"] == 1,
    )


async def gives_up(number):
    session, mine = await Session().open(admin), owner()
    await take("up")
    try:
        await asyncio.wait_for(session.acquire("up", mine, LEASE, 60_000), 0.3)
        error = "none"
    except asyncio.TimeoutError:
        error = "TimeoutError"
    left = await waiters("up")
    impatient = redis.asyncio.Redis(port=PORT)
    words = ("RLOCK.ACQUIRE", "up", owner(), LEASE, "BLOCK", 0)
    try:
        await asyncio.wait_for(impatient.execute_command(*words), 0.3)
    except asyncio.TimeoutError:
        pass
    by_block = await wait_for_waiters("up", 0)
    tasks = [asyncio.create_task(session.acquire("up", owner(), LEASE, 60_000)) for _ in range(2)]
    await wait_for_waiters("up", 2)
    await session.close()
    by_close = await wait_for_waiters("up", 0)
    await asyncio.gather(*tasks, return_exceptions=True)
    await give("up")
    mode = (await info("up"))[b"mode"]
    report.line(
        number,
        "who gives up leaves no waiter: wait_for with CANCEL, wait_for of a BLOCK, a close",
        f"{error}, {left} left; gone: {by_block}; closed, gone: {by_close}; then {mode}",
        (error, left, by_block, by_close, mode) == ("TimeoutError", 0, True, True, b"free"),
    )


async def cancelled(number):
    session, mine = await Session().open(admin), owner()
    await take("cancel")
    task = asyncio.create_task(session.acquire("cancel", mine, LEASE, 0))
    there = await wait_for_waiters("cancel", 1)
    task.cancel()
    end = (await asyncio.gather(task, return_exceptions=True))[0]
    left = await waiters("cancel")
    await give("cancel")
    mode = (await info("cancel"))[b"mode"]
    alive = await session.call("PING")
    await session.close()
    report.line(
        number,
        "a task that is cancelled ends its wait in the server",
        f"waited: {there}, {type(end).__name__}, {left} left, then {mode}; the connection goes on: {alive}",
        there and (left, mode, alive) == (0, b"free", b"PONG"),
    )


async def force_one(number):
    session, keys = await Session().open(admin), ["force:1", "force:2", "force:3"]
    client = await session.call("CLIENT", "ID")
    inboxes = [(await session.acquire(key, owner(), LEASE, 0, "WATCHDOG"))[1] for key in keys]
    await admin.execute_command("RLOCK.FORCE", "force:2")
    notified = await asyncio.wait_for(inboxes[1].get(), 5)
    await asyncio.sleep(0.5)  # a connection that is to be closed would be by now
    watched = [(await info(key))[b"holders"][0][b"watchdog"] for key in ("force:1", "force:3")]
    same = await session.call("CLIENT", "ID") == client
    await session.close()
    report.line(
        number,
        "FORCE of one of three watchdog holds leaves two",
        f"notified {notified}, still held by {watched}, same connection: {same}",
        notified == ("lost", "forced") and watched == [client, client] and same,
    )


async def loss_is_notified(number):
    session, mine = await Session().open(admin), owner()
    token, deleted = await session.acquire("loss:1", mine, LEASE, 0)
    _, kept = await session.acquire("loss:2", mine, LEASE, 0, "WATCHDOG")
    await admin.delete("loss:1")
    notified = await asyncio.wait_for(deleted.get(), 5)
    await admin.client_kill_filter(_id=await session.call("CLIENT", "ID"))
    closed = await asyncio.wait_for(kept.get(), 5)
    try:
        await session.call("PING")
        error = "none"
    except redis.ConnectionError:
        error = "ConnectionError"

    async def is_free():
        return (await info("loss:2"))[b"mode"] == b"free"

    free = await until(is_free)
    after = await Session().open(admin)
    newer, _ = await after.acquire("loss:1", owner(), LEASE, 0)
    await after.close()
    report.line(
        number,
        "a loss is notified, a closed connection too, and nothing reconnects by itself",
        f"{notified}, {closed}, {error}, its watchdog hold ended: {free}, a new session has {newer}",
        (notified, closed, error, free) == (("lost", "deleted"), ("lost", "connection"), "ConnectionError", True)
        and newer > token,
    )


async def one_owner(number):
    session, ann, bob = await Session().open(admin), owner(), owner()
    first, _ = await session.acquire("one:1", ann, LEASE, 0)
    await session.acquire("one:2", bob, LEASE, 0)
    second, _ = await session.acquire("one:1", ann, LEASE, 0)
    waits = asyncio.create_task(session.acquire("one:2", ann, LEASE, 10_000))
    await wait_for_waiters("one:2", 1)
    try:
        refused = (await session.acquire("one:1", bob, LEASE, 10_000))[0]
    except redis.RedisError as error:
        refused = str(error)
    await session.close()
    await asyncio.gather(waits, return_exceptions=True)
    report.line(
        number,
        "one owner for each piece of work: no HELD, and DEADLOCK is raised",
        f"the same token: {first == second}; {str(refused)[:60]}",
        first == second and str(refused).startswith("DEADLOCK"),
    )


async def main():
    checks = (many_waits, own_time_out, lost_reply, gives_up, cancelled, force_one, loss_is_notified, one_owner)
    for number, check in enumerate(checks, 1):
        try:
            await check(number)
        except Exception:
            report.fault(number)


asyncio.run(main())
sys.exit(report.failed)

"""The driver of the Python client for asyncio: a task for each request."""

import asyncio
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

import redis.asyncio
import rlock
import rlock.asyncio
from words import (
    NEEDS, Failed, address, failure, in_child, key, locks_options, options, read, say, servers, sticky_options, way, write,
)

opened, jobs, holds, tasks, later, stickies, uses = {}, {}, {}, {}, [], {}, {}


def where(words):
    locks = opened[words["locks"]]
    if "job" not in words:
        return locks
    return jobs.setdefault((words["locks"], words["job"]), locks.job())


async def hello(words):
    return {"client": "python-asyncio", "needs": [*(need for need in NEEDS if need != "threads"), "use_cancel"]}


async def open_(words):
    kind = redis.asyncio.RedisCluster if words.get("cluster") else redis.asyncio.Redis
    opened[words["locks"]] = rlock.asyncio.Locks(kind(**address(words)), **locks_options(words))


async def backend(words):
    return {"backend": opened[words["locks"]].backend}


async def quorum(words):
    opened[words["locks"]] = rlock.asyncio.Quorum([redis.asyncio.Redis(**one) for one in servers(words)])


async def acquire(words):
    hold = await where(words).acquire(key(words), **options(words))
    holds[words["hold"]] = hold
    hold.lost.add_callback(lambda why: say({"event": "lost", "hold": words["hold"], "reason": why}))
    return {"token": hold.token, "owner": hold.owner}


async def cancel(words):
    tasks[words["acquire"]].cancel()


async def release(words):
    await holds[words["hold"]].release()


async def renew(words):
    await holds[words["hold"]].renew(words["lease"] / 1000 if "lease" in words else None)


async def again(words):
    holds[words["hold"]].again()


async def state(words):
    return {"lost": holds[words["hold"]].lost.reason}


async def wanted(words):
    asked = holds[words["hold"]].wanted
    if "within" not in words:
        return {"wanted": asked.is_set()}
    try:
        return {"wanted": await asyncio.wait_for(asked.wait(), words["within"] / 1000)}
    except asyncio.TimeoutError:
        return {"wanted": False}


async def give_way(words):
    hold = holds[words["hold"]]
    gave = await hold.give_way(**way(words))
    return {"gave": gave, "token": hold.token, "owner": hold.owner}


async def sticky(words):
    stickies[words["sticky"]] = opened[words["locks"]].sticky(words["key"], **sticky_options(words))


class Body:
    """Of a use: goes on in its task until it is ended, and does what it is told."""

    def __init__(self):
        self.told, self.use, self.ended = asyncio.Queue(), None, asyncio.get_running_loop().create_future()

    async def do(self, what):
        done = asyncio.get_running_loop().create_future()
        await self.told.put((what, done))
        await asyncio.wait([done, self.ended], return_when=asyncio.FIRST_COMPLETED)
        return await (done if done.done() else self.ended)

    async def run(self, words, begun):
        try:
            async with stickies[words["sticky"]].use() as self.use:
                token = {"token": await self.use.token()} if words.get("token") else {}
                begun.set_result({"owner": self.use.owner, **token})
                while True:
                    what, done = await self.told.get()
                    if what is None:
                        break
                    if what is Failed:
                        raise Failed("the body failed")
                    try:
                        done.set_result(await what())
                    except Exception as error:
                        done.set_exception(error)
        except BaseException as error:
            (self.ended if begun.done() else begun).set_exception(error)
        else:
            self.ended.set_result({})


async def use(words):
    body, begun = Body(), asyncio.get_running_loop().create_future()
    uses[words["use"]] = body
    if "within" in words:
        await uses[words["within"]].told.put((lambda: body.run(words, begun), asyncio.get_running_loop().create_future()))
    else:
        body.task = asyncio.create_task(body.run(words, begun))
    return await begun


async def use_cancel(words):
    uses[words["use"]].task.cancel()


async def use_token(words):
    body = uses[words["use"]]
    return {"token": await body.do(lambda: body.use.token())}


async def use_state(words):
    return {"lost": uses[words["use"]].use.lost.reason}


async def use_end(words):
    return await uses[words["use"]].do(Failed if words.get("fail") else None)


async def use_many(words):
    last, rising = 0, True
    for _ in range(words["times"]):
        async with stickies[words["sticky"]].use() as one:
            if words.get("token"):
                rising, last = rising and await one.token() > last, await one.token()
    return {"done": words["times"], **({"rising": rising} if words.get("token") else {})}


async def sticky_close(words):
    await stickies[words["sticky"]].close()


async def scope(words):
    stopped = False
    try:
        async with where(words).hold(key(words), **options(words)):
            try:
                await asyncio.sleep(words["body"] / 1000)
            except asyncio.CancelledError:
                stopped = True
                raise
            if words.get("fail"):
                raise Failed("the body failed")
    except rlock.Lost:
        if not stopped:
            raise
    return {"body": "stopped" if stopped else "done"}


async def callback(words):
    """When the hold is lost the program's own callback does something: what it awaits in a task."""
    does = {
        "release": lambda: holds[words["of"]].release(),
        "renew": lambda: holds[words["of"]].renew(),
        "acquire": lambda: acquire({**words, "hold": words["of"]}),
        "close": lambda: opened[words["locks"]].close(),
    }

    async def run():
        said = {"event": "callback", "hold": words["hold"], "end": "ok"}
        try:
            await does[words["does"]]()
        except Exception as error:
            said.update(end=failure(error)["error"], text=repr(error))
        say(said)

    def on_lost(why):
        say({"event": "callback", "hold": words["hold"], "begun": words["does"]})
        if words["does"] in does:
            later.append(asyncio.ensure_future(run()))
            return
        if words["does"] == "block":
            time.sleep(words["ms"] / 1000)
        say({"event": "callback", "hold": words["hold"], "end": "ok"})
        if words["does"] == "throw":
            raise Failed("the callback failed")

    holds[words["hold"]].lost.add_callback(on_lost)


async def count(words):
    end, done = time.monotonic() + words["for"] / 1000, 0
    while time.monotonic() < end:
        try:
            sticky = stickies.get(words.get("sticky"))
            async with sticky.use() if sticky else opened[words["locks"]].hold(words["key"], **options(words)):
                write(words["file"], read(words["file"]) + 1)
        except rlock.NotAcquired:
            continue
        done += 1
    return {"done": done}


async def fork(words):
    locks, hold = opened[words["locks"]], holds[words["hold"]]

    async def take():
        async with locks.hold(f"{hold.key}:child", wait=5):
            return True

    return in_child(lambda: {"child_lost": hold.lost.reason, "child_acquires": in_loop_of_its_own(take)})


def in_loop_of_its_own(take):
    asyncio._set_running_loop(None)  # the child is still in the middle of the parent's
    return asyncio.new_event_loop().run_until_complete(take())


async def close(words):
    await opened[words["locks"]].close()


DO = {
    "hello": hello, "open": open_, "acquire": acquire, "cancel": cancel, "release": release,
    "renew": renew, "again": again, "state": state, "scope": scope, "count": count, "fork": fork,
    "close": close, "quorum": quorum, "callback": callback, "backend": backend,
    "wanted": wanted, "give_way": give_way, "sticky": sticky, "use": use, "use_token": use_token, "use_state": use_state,
    "use_end": use_end, "use_many": use_many, "use_cancel": use_cancel, "sticky_close": sticky_close,
}


async def run(words):
    try:
        say({"id": words["id"], "ok": await DO[words["do"]](words) or {}})
    except asyncio.CancelledError:
        say({"id": words["id"], "error": "cancelled", "text": ""})
    except Exception as error:
        say({"id": words["id"], **failure(error)})


async def main():
    lines = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        words = json.loads(line)
        tasks[words["id"]] = asyncio.create_task(run(words))
    for locks in opened.values():
        await locks.close()
    await asyncio.wait(tasks.values())


asyncio.run(main())

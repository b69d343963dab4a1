"""The driver of the command line: each hold is an `rlock run` whose command waits to be ended."""

import asyncio
import itertools
import json
import os
import re
import signal
import sys

RLOCK = os.path.join(os.environ["RLOCK_BUILT"], "rlock")
NEEDS = ["read_write", "permits", "scope", "quorum", "notified"]
# A command that says what it has, and ends when it is asked to.
HOLD = 'echo "$RLOCK_TOKEN $RLOCK_OWNER"; read -r end'
COUNT = 'read -r n <"$1" || :; printf %s $((n + 1)) >"$1"'
FAILURES = {115: "not_acquired", 116: "lost", 117: "connection", 118: "refused", 125: "argument"}

opened, closed, holds, runs = {}, set(), {}, {}
kinds = itertools.cycle([signal.SIGTERM, signal.SIGINT])


def say(what):
    line = json.dumps(what).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


class Failed(Exception):
    """What is answered in the place of ok."""


def argument(text):
    return Failed({"error": "argument", "text": text})


def words_of(words):
    """The arguments of `rlock`, before the key."""
    where = opened.get(words["locks"])
    if where is None or words["locks"] in closed:
        raise Failed({"error": "connection", "text": "not open"})
    said = ["run", *where]
    if words.get("permits", 1) != 1 or "keys" in words or "job" in words:
        raise argument("there is no such option")
    if "wait" in words:
        said += ["--wait", "forever" if words["wait"] == -1 else f"{words['wait']}ms"]
    if "lease" in words:
        said += ["--lease", f"{words['lease']}ms"]
    if words.get("mode") == "read":
        said.append("--read")
    if "limit" in words:
        said += ["--limit", str(words["limit"])]
    return said


class Run:
    """One `rlock run`."""

    def __init__(self, words, command):
        self.locks, self.name = words["locks"], words.get("hold")
        self.arguments = [*words_of(words), words["key"], "--", *command]
        self.process = None
        self.errors = ""
        self.cancelled = self.released = False
        self.over = asyncio.get_running_loop().create_future()  # its exit status

    async def start(self):
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            RLOCK, *self.arguments, stdin=pipe, stdout=pipe, stderr=pipe
        )
        if self.cancelled:
            self.cancel()
        self.watching = asyncio.create_task(self.watch())

    async def watch(self):
        self.errors = (await self.process.stderr.read()).decode()
        sys.stderr.write(self.errors)
        self.over.set_result(await self.process.wait())

    def cancel(self):
        self.cancelled = True
        if self.process and self.process.returncode is None:
            self.process.send_signal(next(kinds))

    @property
    def reason(self):
        """Why the lock was lost, if it was."""
        if not self.over.done() or self.over.result() != 116:
            return None
        said = re.search(r"the lock was lost \((\w+)\)", self.errors)
        return said.group(1) if said else "other"

    async def end(self):
        """Its end, as an exception where that is a failure."""
        status = await self.over
        status = 128 - status if status < 0 else status
        if self.cancelled and status in (128 + signal.SIGTERM, 128 + signal.SIGINT):
            raise Failed({"error": "cancelled", "text": f"ended with {status}"})
        word = FAILURES.get(status, "other")
        failure = {"error": word, "text": self.errors.strip() or f"ended with {status}"}
        if code := re.search(r"the server refused: (\w+)", self.errors):
            failure["code"] = code.group(1)
        if re.search(r"rlock: deadlock", self.errors):
            failure["error"] = "deadlock"
        if status:
            raise Failed(failure)


async def run(words, command):
    if "key" not in words:
        raise argument("a command is run under one key")
    one = runs[words["id"]] = Run(words, command)
    await one.start()
    return one


async def acquire(words):
    one = await run(words, ["sh", "-c", HOLD])
    line = await one.process.stdout.readline()
    if not line:
        await one.end()
        raise Failed({"error": "other", "text": "it ended before it was asked to"})
    holds[words["hold"]] = one
    asyncio.create_task(report(one, words["hold"]))
    token, owner = line.decode().split()
    return {"token": int(token), "owner": owner}


async def report(one, name):
    await one.over
    if one.reason and not one.released:
        say({"event": "lost", "hold": name, "reason": one.reason})


async def release(words):
    one = holds.get(words["hold"])
    if one is None:
        raise Failed({"error": "other", "text": "there is no such hold"})
    if one.released:
        return
    one.released = True
    if one.process.stdin and not one.over.done():
        one.process.stdin.write(b"end\n")
    await one.end()


async def state(words):
    return {"lost": holds[words["hold"]].reason}


async def cancel(words):
    runs[words["acquire"]].cancel()


async def scope(words):
    body = f"sleep {words['body'] / 1000}" + ("; exit 1" if words.get("fail") else "")
    one = await run(words, ["sh", "-c", body])
    try:
        await one.end()
    except Failed:
        if one.reason:
            return {"body": "stopped"}
        raise
    return {"body": "done"}


async def count(words):
    loop, done = asyncio.get_running_loop(), 0
    end = loop.time() + words["for"] / 1000
    while loop.time() < end:
        one = await run(words, ["sh", "-c", COUNT, "sh", words["file"]])
        try:
            await one.end()
        except Failed as failed:
            if failed.args[0]["error"] != "not_acquired":
                raise
            continue
        done += 1
    return {"done": done}


async def hello(words):
    return {"client": "cli", "needs": NEEDS}


async def open_(words):
    required = ["--backend", words["backend"]] if "backend" in words else []
    opened[words["locks"]] = ["--url", url(words, words["host"], words["port"]), *trusts(words), *required]


def url(words, host, port):
    scheme = "rediss" if words.get("tls") else "redis"
    who = f"{words.get('user', '')}:{words['password']}@" if "password" in words else ""
    return f"{scheme}://{who}{host}:{port}/"


def trusts(words):
    return ["--cacert", words["ca"]] if words.get("tls") else []


async def quorum(words):
    servers = ",".join(url(words, host, port) for host, port in words["servers"])
    opened[words["locks"]] = ["--quorum", servers, *trusts(words)]


async def close(words):
    closed.add(words["locks"])
    await end_all([one for one in runs.values() if one.locks == words["locks"]])


async def end_all(those):
    for one in those:
        one.cancel()
    for one in those:
        await one.over


DO = {
    "hello": hello, "open": open_, "quorum": quorum, "acquire": acquire, "release": release, "state": state,
    "cancel": cancel, "scope": scope, "count": count, "close": close,
}


async def serve(words):
    try:
        if words["do"] not in DO:
            raise argument(f"there is no {words['do']}")
        say({"id": words["id"], "ok": await DO[words["do"]](words) or {}})
    except Failed as failed:
        say({"id": words["id"], **failed.args[0]})
    except Exception as error:
        say({"id": words["id"], "error": "other", "text": repr(error)})


async def main():
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    serving = set()
    while line := await reader.readline():
        task = asyncio.create_task(serve(json.loads(line)))
        serving.add(task)
        task.add_done_callback(serving.discard)
    await end_all(list(runs.values()))
    if serving:
        await asyncio.wait(serving)


asyncio.run(main())

"""What the runner says to a server without the module, in place of the module's commands.

It is another client there: it calls the functions of lua-compat/rlock.lua. It loads none, so
that the client under test has to: where there are no functions it sends the same text as a
script of its own.
"""
import functools
import hashlib
import os
import pathlib

from resp import Error
from version import is_before_7

# What servers have in this run: `module`, `functions` or `script`.
BACKEND = os.environ.get("RLOCK_BACKEND") or "module"
BACKENDS = ("module", "functions", "script")

# Reasons of losses that scenarios write as `${forced}`. Without the module nobody says why a lock
# is gone, and it is the lease that ends, not the connection.
REASONS = {name: name for name in ("forced", "flushed", "released")} | {"silent": "connection"}
if BACKEND != "module":
    REASONS = dict.fromkeys(REASONS, "deleted") | {"silent": "lease"}

LIBRARY = pathlib.Path(__file__).resolve().parents[2] / "lua-compat/rlock.lua"
FUNCTION = "rlock1_"
OF_ONE_KEY = ("acquire", "release", "renew", "force", "limit", "cancel", "info")
OF_SEVERAL = ("macquire", "mrelease", "mrenew")
# What these commands have and the library does not.
REFUSED = {"BLOCK", "QUEUE", "NOTIFY", "WATCHDOG", "IFTOKEN", "DEADLOCK"}


class NoCounterpart(Exception):
    """A server without the module has nothing that would do."""

    def __init__(self, words):
        super().__init__(f"{' '.join(words)[:100]!r} has no counterpart without the module: say so by \"module\"")


class Waiters(int):
    """How many wait. A plain server shows places in the queue, and a process has one for all its waits.

    Nobody waits where there is no place. So many wait where as many of the programs have one, or
    listen to a lock that they want together with others: for that there are no places.
    """

    def __new__(cls, placed, listening, programs):
        self = super().__new__(cls, placed + listening)
        self.placed, self.programs = placed, programs
        return self

    def fits(self, expected):
        if str(expected) == "0":  # who has ended its wait may listen for a while
            return self.placed == 0
        return self >= min(int(expected), max(1, self.programs))


# The other way: a request of the client under test as the command that it stands for.


def as_command(words):
    """A call of the library as the module's command, for the rules of a proxy; others as they are."""
    words = list(map(str, words))
    if not words or words[0].lower() not in ("fcall", "fcall_ro", "eval", "eval_ro", "evalsha", "evalsha_ro"):
        return words
    name, count, rest = words[1], words[2], words[3:]
    keys, rest = rest[: int(count)], rest[int(count) :]
    if not words[0].lower().startswith("fcall"):
        rest = rest[1:] if rest[:1] == ["CLUSTER"] else rest
        name, rest = (rest or [""])[0], rest[1:]
    command = name.removeprefix(FUNCTION)
    if command not in OF_ONE_KEY + OF_SEVERAL:
        return words
    locks = [key for key in keys if key not in belonging(keys)]
    locks = [str(len(locks)), *locks] if command in OF_SEVERAL else locks
    return [f"RLOCK.{command.upper()}", *locks, *rest]


def prefixed(prefix, key):
    return f"{prefix}:{key}" if "{" in key else f"{prefix}:{{{key}}}"


COUNTER, QUEUE, PLACES = "redisson_lock_token", "rlock1_queue", "rlock1_places"


def belonging(keys):
    """The keys that are declared beside these locks."""
    return {prefixed(prefix, key) for key in keys for prefix in (COUNTER, QUEUE, PLACES)}


# What the runner says


async def say(server, words, programs=1, together=()):
    """A command of a scenario, at a server without the module.

    `programs` may wait there, for these keys `together` with others.
    """
    first = words[0].upper()
    if first == "RLOCK.INFO":
        return await info(server, words, programs, together)
    if first.startswith("RLOCK."):
        return await call(server, words)
    if first == "DBSIZE":
        return len(await keys_of(server))
    if first in ("INFO", "CONFIG", "ACL") and any("rlock" in word for word in words):
        raise NoCounterpart(words)
    return await server.say(words)


async def call(server, words):
    name = words[0].lower().removeprefix("rlock.")
    if REFUSED.intersection(word.upper() for word in words[3:]):
        raise NoCounterpart(words)
    if name in OF_ONE_KEY:
        keys, rest = words[1:2], words[2:]
    elif name in OF_SEVERAL:
        count = int(words[1])
        keys, rest = words[2 : 2 + count], words[2 + count :]
    else:
        raise NoCounterpart(words)
    return await run(server, f"{FUNCTION}{name}", keys, rest)


async def run(server, name, keys, rest):
    if BACKEND != "script":
        kind = "FCALL_RO" if name == f"{FUNCTION}info" else "FCALL"
        reply = await server.say([kind, name, len(keys), *keys, *rest])
        if not isinstance(reply, Error) or not reply.startswith(("ERR Function not found", "ERR unknown command")):
            return reply
    text, sha = script()
    words = [len(keys), *keys, *(["CLUSTER"] if "cluster-enabled" in server.config else []), name, *rest]
    reply = await server.say(["EVALSHA", sha, *words])
    if isinstance(reply, Error) and reply.startswith("NOSCRIPT"):
        reply = await server.say(["EVAL", text, *words])
    return reply


@functools.cache
def script():
    """The library as a script that is not the client's own, and its hash."""
    text = LIBRARY.read_text().split("\n", 1)[1] + "-- As the runner of the scenarios sends it.\n"
    return text, hashlib.sha1(text.encode()).hexdigest()


async def info(server, words, programs, together):
    reply = await call(server, words)
    if isinstance(reply, Error):
        return reply
    key, holders = words[1], reply["holders"]
    if len(holders) == 1 and holders[0]["token"] is None:
        # A script remembers no token. What it gave last stands in the lock's counter.
        counter = await server.say(["GET", prefixed(COUNTER, key)])
        holders[0]["token"] = int(counter) if isinstance(counter, str) and counter.isdigit() else None
    placed = await places(server, prefixed(PLACES, key))
    reply["waiters"] = Waiters(placed, await listening(server, key) if key in together else 0, programs)
    return reply


async def places(server, name):
    """How many places of the queue are alive."""
    seconds, us = map(int, await server.say(["TIME"]))
    count = await server.say(["ZCOUNT", name, f"({seconds * 1000 + us // 1000}", "+inf"])
    return 0 if isinstance(count, Error) else count


async def listening(server, key):
    """How many listen to the lock."""
    sharded = "SHARD" if "cluster-enabled" in server.config else ""
    channels = [prefixed(name, key) for name in ("redisson_lock__channel", "redisson_rwlock")]
    return max((await server.say(["PUBSUB", f"{sharded}NUMSUB", *channels]))[1::2])


async def keys_of(server):
    """All keys, without the counters of tokens, which stay for some weeks."""
    return [key for key in await server.say(["KEYS", "*"]) if not key.startswith(f"{COUNTER}:")]


async def owners(server):
    """Those who hold or wait there, each with what it does."""
    found = []
    for key in await keys_of(server):
        if key.startswith(f"{PLACES}:") and await places(server, key):
            found.append(f"somebody waits, as {key} says on {server.name}")
        if key.startswith((f"{PLACES}:", f"{QUEUE}:")) or await server.say(["TYPE", key]) != "hash":
            continue
        its = await run(server, f"{FUNCTION}info", [key], [])
        if not isinstance(its, Error):  # another's hash
            found += [f"{one['owner']} holds {key} on {server.name}" for one in its["holders"]]
    return found


# How a server of this backend is set up


def without_functions(users):
    """The server's users, of whom none may use functions where the backend is `script`."""
    if BACKEND != "script" or is_before_7():  # that knows no such command to forbid
        return users
    if not any(user.split()[0] == "default" for user in users):
        users = ["default on nopass ~* &* +@all", *users]
    return [f"{user} -fcall -fcall_ro -function" for user in users]

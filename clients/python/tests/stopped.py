"""A program that holds a lock, for the tests that stop it: PORT KEY FACE {options of Locks} {options of the lock}.

It says what comes, a line each: `held`; to `?` on its input why the lock is lost; and at the end of its input, or at
once when it is lost, how the scope ended.
"""

import asyncio
import json
import sys

import redis
import redis.asyncio

import rlock
import rlock.asyncio

port, key, face, of_locks, of_lock = int(sys.argv[1]), sys.argv[2], sys.argv[3], *map(json.loads, sys.argv[4:])
key = key.split(",") if "," in key else key


def say(what):
    # In one piece: a callback may speak at the same moment, and print() writes the end of the line by itself.
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def threads():
    with rlock.Locks(redis.Redis(port=port), **of_locks) as locks, locks.hold(key, wait=60, **of_lock) as hold:
        hold.lost.add_callback(lambda reason: say(f"lost {reason}"))
        say("held")
        for _ in sys.stdin:
            say(hold.lost.reason)


async def tasks():
    loop, lines = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with rlock.asyncio.Locks(redis.asyncio.Redis(port=port), **of_locks) as locks:
        async with locks.hold(key, wait=60, **of_lock) as hold:
            hold.lost.add_callback(lambda reason: say(f"lost {reason}"))
            say("held")
            while await lines.readline():
                say(hold.lost.reason)


try:
    threads() if face == "threads" else asyncio.run(tasks())
    say("released")
except rlock.Lost as error:
    say(f"raised {error.reason}")

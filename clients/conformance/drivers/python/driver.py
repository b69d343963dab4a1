"""The driver of the Python client for threads: a thread for each request."""

import functools
import json
import queue
import sys
import threading
import time

import redis
import rlock
from words import (
    NEEDS, Failed, address, failure, in_child, key, locks_options, options, read, say, servers, sticky_options, way, write,
)

opened, jobs, holds, cancels, stickies, uses = {}, {}, {}, {}, {}, {}
guard = threading.Lock()


def where(words):
    locks = opened[words["locks"]]
    if "job" not in words:
        return locks
    with guard:
        return jobs.setdefault((words["locks"], words["job"]), locks.job())


def hello(words):
    return {"client": "python", "needs": NEEDS}


def open_(words):
    kind = redis.RedisCluster if words.get("cluster") else redis.Redis
    opened[words["locks"]] = rlock.Locks(kind(**address(words)), **locks_options(words))


def backend(words):
    return {"backend": opened[words["locks"]].backend}


def quorum(words):
    opened[words["locks"]] = rlock.Quorum([redis.Redis(**one) for one in servers(words)])


def acquire(words):
    hold = where(words).acquire(key(words), cancel=cancels.get(words["id"]), **options(words))
    holds[words["hold"]] = hold
    hold.lost.add_callback(lambda why: say({"event": "lost", "hold": words["hold"], "reason": why}))
    return {"token": hold.token, "owner": hold.owner}


def cancel(words):
    cancels[words["acquire"]].set()


def release(words):
    holds[words["hold"]].release()


def renew(words):
    holds[words["hold"]].renew(words["lease"] / 1000 if "lease" in words else None)


def again(words):
    holds[words["hold"]].again()


def state(words):
    return {"lost": holds[words["hold"]].lost.reason}


def wanted(words):
    asked = holds[words["hold"]].wanted
    return {"wanted": asked.wait(words["within"] / 1000) if "within" in words else asked.is_set()}


def give_way(words):
    hold = holds[words["hold"]]
    gave = hold.give_way(**way(words))
    return {"gave": gave, "token": hold.token, "owner": hold.owner}


def sticky(words):
    stickies[words["sticky"]] = opened[words["locks"]].sticky(words["key"], **sticky_options(words))


class Body:
    """Of a use: goes on in its thread until it is ended, and does what it is told."""

    def __init__(self):
        self.told, self.use = queue.SimpleQueue(), None

    def do(self, what):
        done = queue.SimpleQueue()
        self.told.put((what, done))
        result = done.get()
        if isinstance(result, Exception):
            raise result
        return result

    def run(self, words, begun):
        """`begun` gets what it has begun with, or the error."""
        ended = None
        try:
            with stickies[words["sticky"]].use() as self.use:
                token = {"token": self.use.token()} if words.get("token") else {}
                begun.put({"owner": self.use.owner, **token})
                while True:
                    what, done = self.told.get()
                    if what is None:
                        ended = done
                        break
                    if what is Failed:
                        ended = done
                        raise Failed("the body failed")
                    try:
                        done.put(what())
                    except Exception as error:
                        done.put(error)
        except Exception as error:
            (ended or begun).put(error)
        else:
            ended.put({})


def use(words):
    body, begun = Body(), queue.SimpleQueue()
    uses[words["use"]] = body
    if "within" in words:
        uses[words["within"]].told.put((functools.partial(body.run, words, begun), queue.SimpleQueue()))
    else:
        threading.Thread(target=body.run, args=(words, begun), daemon=True).start()
    result = begun.get()
    if isinstance(result, Exception):
        raise result
    return result


def use_token(words):
    body = uses[words["use"]]
    return {"token": body.do(lambda: body.use.token())}


def use_state(words):
    return {"lost": uses[words["use"]].use.lost.reason}


def use_end(words):
    return uses[words["use"]].do(Failed if words.get("fail") else None)


def use_many(words):
    last, rising = 0, True
    for _ in range(words["times"]):
        with stickies[words["sticky"]].use() as one:
            if words.get("token"):
                rising, last = rising and one.token() > last, one.token()
    return {"done": words["times"], **({"rising": rising} if words.get("token") else {})}


def sticky_close(words):
    stickies[words["sticky"]].close()


def scope(words):
    stopped = False
    try:
        with where(words).hold(key(words), cancel=cancels[words["id"]], **options(words)) as hold:
            stopped = hold.lost.wait(words["body"] / 1000)
            if words.get("fail") and not stopped:
                raise Failed("the body failed")
    except rlock.Lost:
        if not stopped:
            raise
    return {"body": "stopped" if stopped else "done"}


def callback(words):
    """When the hold is lost the program's own callback does something."""
    does = {
        "release": lambda: holds[words["of"]].release(),
        "renew": lambda: holds[words["of"]].renew(),
        "acquire": lambda: acquire({**words, "hold": words["of"]}),
        "close": lambda: opened[words["locks"]].close(),
        "block": lambda: time.sleep(words["ms"] / 1000),
        "throw": lambda: None,
    }

    def on_lost(why):
        said = {"event": "callback", "hold": words["hold"], "end": "ok"}
        say({"event": "callback", "hold": words["hold"], "begun": words["does"]})
        try:
            does[words["does"]]()
        except Exception as error:
            said.update(end=failure(error)["error"], text=repr(error))
        say(said)
        if words["does"] == "throw":
            raise Failed("the callback failed")

    holds[words["hold"]].lost.add_callback(on_lost)


def count(words):
    end, done = time.monotonic() + words["for"] / 1000, 0
    while time.monotonic() < end:
        try:
            sticky = stickies.get(words.get("sticky"))
            with sticky.use() if sticky else opened[words["locks"]].hold(words["key"], **options(words)):
                write(words["file"], read(words["file"]) + 1)
        except rlock.NotAcquired:
            continue
        done += 1
    return {"done": done}


def fork(words):
    locks, hold = opened[words["locks"]], holds[words["hold"]]

    def look():
        seen = {"child_lost": hold.lost.reason}
        with locks.hold(f"{hold.key}:child", wait=5):
            seen["child_acquires"] = True
        return seen

    return in_child(look)


def close(words):
    opened[words["locks"]].close()


DO = {
    "hello": hello, "open": open_, "acquire": acquire, "cancel": cancel, "release": release,
    "renew": renew, "again": again, "state": state, "scope": scope, "count": count, "fork": fork,
    "close": close, "quorum": quorum, "callback": callback, "backend": backend,
    "wanted": wanted, "give_way": give_way, "sticky": sticky, "use": use, "use_token": use_token, "use_state": use_state,
    "use_end": use_end, "use_many": use_many, "sticky_close": sticky_close,
}


def run(words):
    try:
        say({"id": words["id"], "ok": DO[words["do"]](words) or {}})
    except Exception as error:
        say({"id": words["id"], **failure(error)})


def main():
    threading.stack_size(256 * 1024)
    running = []
    for line in sys.stdin:
        words = json.loads(line)
        cancels[words["id"]] = rlock.Cancel()
        running = [thread for thread in running if thread.is_alive()]
        running.append(threading.Thread(target=run, args=(words,)))
        running[-1].start()
    for locks in opened.values():
        locks.close()
    for thread in running:
        thread.join()


main()

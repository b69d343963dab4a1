"""What the two drivers have in common: words in, errors out."""

import json
import math
import os
import threading

import rlock

NEEDS = [
    "read_write", "permits", "many", "job", "again", "acks", "max", "scope", "cluster", "fork", "quorum", "notified",
    "callback", "threads", "surrogates", "tight", "backend", "patience", "wanted",
    "give_way", "sticky", "use_within",
]

_saying = threading.Lock()


class Failed(Exception):
    """The body's own error."""


def say(what):
    line = json.dumps(what).encode() + b"\n"
    with _saying:
        while line:
            line = line[os.write(1, line) :]


def servers(words):
    """Those of each server of a quorum."""
    return [address({**words, "host": host, "port": port}) for host, port in words["servers"]]


def address(words):
    """The keyword arguments of redis-py's clients, of both faces."""
    given = {"host": words["host"], "port": words["port"]}
    given.update({name: words[word] for word, name in (("user", "username"), ("password", "password")) if word in words})
    if words.get("tls"):
        given.update(ssl=True, ssl_ca_certs=words["ca"])
    if words.get("tight"):
        given.update(socket_timeout=0.2, health_check_interval=1, max_connections=1)
    return given


def locks_options(words):
    """Of Locks."""
    if "ask_again_ms" in words:
        rlock._protocol.FIND = words["ask_again_ms"] / 1000
    given = {"timeout": words["timeout"] / 1000} if "timeout" in words else {}
    if "patience" in words:
        given["patience"] = None if words["patience"] is None else words["patience"] / 1000
    return {**given, **({"backend": words["backend"]} if "backend" in words else {})}


def key(words):
    return words["keys"] if "keys" in words else words["key"]


def options(words):
    given = {name: words[name] for name in ("watchdog", "mode", "limit", "permits", "acks") if name in words}
    for name, option in (("wait", "wait"), ("lease", "lease"), ("max", "max"), ("acks_ms", "acks_time")):
        if name in words:
            given[option] = math.inf if words[name] == -1 and name == "wait" else words[name] / 1000
    return given


def way(words):
    """Of give_way."""
    return {name: words[name] / 1000 for name in ("wait", "least") if name in words}


def sticky_options(words):
    return {name: words[name] / 1000 for name in ("idle", "wait", "lease") if name in words}


def failure(error):
    names = [
        (rlock.NotAcquired, "not_acquired"),
        (rlock.Lost, "lost"),
        (rlock.Deadlock, "deadlock"),
        (rlock.HeldByJob, "held_by_job"),
        (rlock.Refused, "refused"),
        (rlock.ConnectionError, "connection"),
        (rlock.Cancelled, "cancelled"),
        ((ValueError, TypeError), "argument"),
    ]
    word = next((word for kind, word in names if isinstance(error, kind)), "other")
    answer = {"error": word, "text": f"{type(error).__name__}: {error}"}
    if isinstance(error, rlock.Refused):
        answer["code"] = error.code
    if isinstance(error, rlock.NotAcquired):
        answer.update({name: getattr(error, name, None) for name in ("key", "held_by")})
    return answer


def read(file):
    try:
        with open(file) as numbers:
            return int(numbers.read() or 0)
    except FileNotFoundError:
        return 0


def write(file, number):
    with open(file, "w") as numbers:
        numbers.write(str(number))


def in_child(look):
    """What `look` gives in a fork of this process."""
    ours, its = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(its, json.dumps(look()).encode())
        except BaseException as error:
            os.write(its, json.dumps({"error": repr(error)}).encode())
        os._exit(0)
    os.close(its)
    with os.fdopen(ours) as seen:
        answer = json.loads(seen.read() or "{}")
    os.waitpid(child, 0)
    return answer

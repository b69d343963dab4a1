"""What a server has: the module, the function library `rlock.lua`, or only scripts. And rlock's commands as it
takes them.

The clients speak as to the module, whose words the library has too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, Literal, Optional, Union

from ._resp import Failure, Word

Backend = Literal["module", "functions", "script"]
LESS: list[Backend] = ["module", "functions", "script"]  # each can do less than the one before it
Words = tuple[Word, ...]
Search = Generator[Words, Any, Union[Backend, Failure]]

HEARTBEAT = "RLOCK.HEARTBEAT"  # has no counterpart in the library, nor in older modules
PROBE = ("COMMAND", "INFO", "RLOCK.ACQUIRE")
ONE_NODE = "this server is a node of a cluster: give Locks a RedisCluster"
NO_SHARDS = "a cluster needs Redis 7.0 or newer, or Valkey: this server has no sharded pub/sub"
NO_MODULE = "the server has no rlock module: load librlock.so (loadmodule), see the README"
MAY_NOT_LOAD = (
    "the server has no rlock module, and this user may not FUNCTION LOAD or SCRIPT LOAD: an administrator runs "
    "redis-cli -x FUNCTION LOAD <rlock.lua, or gives the user +fcall +fcall_ro +function|load"
)
WITHOUT = (
    "the server has no rlock module; the locks are kept by its %s. Not to be had: waiters in order and hand-over at "
    "once, the server's watchdog (this process renews), notice of loss, detection of deadlocks"
)

# What belongs to a lock: it is named to the server as far as it is known, for some let a call touch no other keys.
TURNS = (b"rlock1_queue", b"rlock1_places")
ALL = (b"redisson_lock_token", *TURNS)
BESIDE = {
    **dict.fromkeys(("ACQUIRE", "MACQUIRE"), ALL),
    **dict.fromkeys(("RELEASE", "MRELEASE", "CANCEL", "FORCE", "LIMIT"), TURNS),
}
MOST_NAMED = 2**16  # bytes of keys: a server may be set to close a connection that sends 1 MB
# What only the module knows, and how many words that is.
OF_THE_MODULE = {"NOTIFY": 3, "WATCHDOG": 1, "IFTOKEN": 2}


@lru_cache(None)
def library() -> bytes:
    return resources.files(__package__).joinpath("rlock.lua").read_bytes()


@lru_cache(None)
def script() -> tuple[bytes, str]:
    """The library without its first line, and by what name EVALSHA knows it."""
    text = library().partition(b"\n")[2]
    return text, hashlib.sha1(text, usedforsecurity=False).hexdigest()


def named(prefix: bytes, key: bytes) -> bytes:
    """A name that has a brace already is used as it is."""
    return prefix + b":" + (key if b"{" in key else b"{" + key + b"}")


def channels(keys: Sequence[bytes], shared: bool) -> set[bytes]:
    """Where the server says that one of them is free."""
    return {named(b"redisson_rwlock" if shared else b"redisson_lock__channel", key) for key in keys}


def own_channel(key: bytes, place: str) -> bytes:
    """Where it says so to one place in the queue."""
    return named(b"redisson_lock__channel", key) + b":" + place.encode()


def _beside(key: bytes, prefixes: Sequence[bytes]) -> list[bytes]:
    """None where they would lie in another slot."""
    _, brace, rest = key.partition(b"{")
    near = rest.find(b"}") > 0 if brace else b"}" not in key
    return [named(prefix, key) for prefix in prefixes] if near else []


@lru_cache(256)
def _declared(key: bytes, prefixes: Sequence[bytes]) -> tuple[Word, ...]:
    return (key, *_beside(key, prefixes))


def _behind(word: Word, rest: Words) -> int:
    """Where it stands behind the owner; 0: nowhere."""
    return rest.index(word, 1) if word in rest and word in rest[1:] else 0


def said(words: Words, backend: Backend | None, cluster: bool) -> Words:
    """A command of the module as this server takes it."""
    if backend in (None, "module") or not is_ours(words):
        return words
    verb, many = str(words[0])[6:], words[1]
    first, end = (2, 2 + many) if isinstance(many, int) else (1, 2)
    keys, rest = words[first:end], words[end:]
    for word, count in OF_THE_MODULE.items():
        if at := _behind(word, rest):
            rest = (*rest[:at], *rest[at + count :])
    prefixes = ALL if _behind("FENCE", rest) else BESIDE.get(verb, ())
    if len(keys) == 1 and isinstance(keys[0], bytes) and len(keys[0]) < 256:
        keys = _declared(keys[0], prefixes)
    else:
        names = [key if isinstance(key, bytes) else str(key).encode() for key in keys]
        if sum(map(len, names)) <= MOST_NAMED:
            keys = (*keys, *(name for key in names for name in _beside(key, prefixes)))
    name = f"rlock1_{verb.lower()}"
    if backend == "functions":
        return ("FCALL_RO" if verb == "INFO" else "FCALL", name, len(keys), *keys, *rest)
    return ("EVALSHA", script()[1], len(keys), *keys, *(("CLUSTER",) if cluster else ()), name, *rest)


def search(alone: bool = False, need: Optional[Backend] = None) -> Search:
    """Asks what the server has: gives commands, and is sent their replies. At the end the backend, or why there
    is none. `alone`: it must not be a node of a cluster."""
    reply = yield PROBE
    if isinstance(reply, Failure):  # the number of arguments is looked at before the rights
        reply = yield ("RLOCK.ACQUIRE",)
        found = isinstance(reply, Failure) and not unknown_command(reply)
    else:
        found = bool(reply and reply[0])
    if found:
        return "module"
    if need == "module":
        return Failure("ERR", NO_MODULE)
    if alone and not isinstance((yield ("CLUSTER", "MYID")), Failure):  # KEYSLOT needs no cluster on Valkey 9
        return Failure("MOVED", ONE_NODE)
    reply = yield ("FCALL_RO", "rlock1_version", 0)
    if isinstance(reply, Failure) and is_gone(reply) and not unknown_command(reply):
        reply = yield ("FUNCTION", "LOAD", library())
        if isinstance(reply, Failure) and "already exists" in reply.text:
            reply = b""
    if not isinstance(reply, Failure):
        return "functions"
    text, sha = script()
    reply = yield ("EVALSHA", sha, 0, "rlock1_version")
    if isinstance(reply, Failure) and is_gone(reply):
        reply = yield ("SCRIPT", "LOAD", text)
    if not isinstance(reply, Failure):
        return "script"
    reply = plain_failure(reply)
    unable = reply.code == "NOPERM" or unknown_command(reply)
    return Failure("NOPERM", MAY_NOT_LOAD) if unable else reply


def is_gone(reply: Failure) -> bool:
    """What was called is not there (any more): that says nothing of the lock."""
    lacks = reply.text.startswith("Function not found") or unknown_command(reply)
    return reply.code == "NOSCRIPT" or (reply.code == "ERR" and lacks)


def is_ours(words: Words) -> bool:
    """The library has it too."""
    return len(words) > 1 and str(words[0]).startswith("RLOCK.") and words[0] != HEARTBEAT


def unknown_command(reply: Failure) -> bool:
    return reply.code == "ERR" and reply.text.lower().startswith("unknown command")


def of_channel(reply: Failure, sharded: bool) -> Failure:
    """Why the session has no channel."""
    return Failure("ERR", NO_SHARDS) if sharded and unknown_command(reply) else reply


def plain_failure(reply: Failure) -> Failure:
    """What the server refuses inside of a call, as it would refuse the call."""
    refused = any(said in reply.text for said in ("ACL failure", "The user executing", "NOPERM"))
    return Failure("NOPERM", reply.text) if reply.code == "ERR" and refused else reply

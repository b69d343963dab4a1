"""Which node of a cluster has which key, as redis-py's cluster client knows it."""

from __future__ import annotations

import itertools
from typing import Any

from redis.crc import key_slot

PAUSE = 0.05  # s: before the slots are read again
NODE_WAIT = 5.0  # s: for a slot that no node has


def node_of(client: Any, key: bytes) -> Any:
    """The master that has it; None if nobody is known to."""
    nodes = client.nodes_manager.slots_cache.get(key_slot(key))
    return nodes[0] if nodes else None


def tag_at(client: Any, name: str) -> str | None:
    """A hash tag in a slot of the node; None if it has none."""
    slots = list(client.nodes_manager.slots_cache.items())
    mine = {slot for slot, nodes in slots if nodes and nodes[0].name == name}
    return next(tag for tag in map(str, itertools.count()) if key_slot(tag.encode()) in mine) if mine else None


def key_in(words: Any) -> bytes:
    """The key, or the first of them, in a command of rlock."""
    return bytes(words[2] if isinstance(words[1], int) else words[1])

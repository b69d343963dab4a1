"""RESP3, as far as a session needs it: words to bytes, and bytes to replies.

redis-py's own parsers belong to a socket. A session reads while other threads write, also
over TLS, so it has the socket to itself and needs a parser that only parses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Union

Word = Union[bytes, str, int]


class Failure(NamedTuple):
    """An error reply: its first word, and the rest."""

    code: str
    text: str


class Push(NamedTuple):
    """A message that no command asked for."""

    items: list[Any]


def encode(words: Sequence[Word]) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
    return b"".join(parts)


class Parser:
    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """What is whole by now; the rest is kept."""
        self._bytes += data
        replies: list[Any] = []
        at = 0
        try:
            while at < len(self._bytes):
                reply, at = _parse(self._bytes, at)
                replies.append(reply)
        except _Incomplete:
            pass
        del self._bytes[:at]
        return replies


class _Incomplete(Exception):
    pass


def _parse(data: bytearray, at: int) -> tuple[Any, int]:
    end = data.find(b"\r\n", at)
    if end < 0:
        raise _Incomplete
    kind, line, at = bytes(data[at : at + 1]), bytes(data[at + 1 : end]), end + 2
    if kind == b"+":
        return line, at
    if kind in (b":", b"("):
        return int(line), at
    if kind == b"-":
        return _failure(line), at
    if kind == b"_" or line == b"-1":
        return None, at
    if kind == b",":
        return float(line), at
    if kind == b"#":
        return line == b"t", at
    if kind in (b"$", b"=", b"!"):
        size = int(line)
        if len(data) < at + size + 2:
            raise _Incomplete
        text = bytes(data[at : at + size])
        at += size + 2
        return (_failure(text) if kind == b"!" else text[4:] if kind == b"=" else text), at
    if kind not in (b"*", b"~", b">", b"%"):
        raise ValueError(f"not RESP3: {kind!r}")
    items = []
    for _ in range(int(line) * (2 if kind == b"%" else 1)):
        item, at = _parse(data, at)
        items.append(item)
    if kind == b"%":
        return dict(zip(items[::2], items[1::2])), at
    return (Push(items) if kind == b">" else items), at


def _failure(line: bytes) -> Failure:
    code, _, text = line.decode(errors="replace").partition(" ")
    return Failure(code, text)

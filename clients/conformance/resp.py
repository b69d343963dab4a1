"""Reads and writes RESP2 and RESP3."""


class Error(str):
    """An error reply."""


class Push(list):
    """A message that is no reply."""


class Partial(Exception):
    """What came so far is not a whole frame."""


def encode(words):
    """A request."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode(errors="surrogateescape")
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Parser:
    """Takes bytes in whatever pieces, gives whole frames: each with its value and its bytes.

    With `requests` it reads what a client sends, inline commands too.
    """

    def __init__(self, requests=False):
        self.data = bytearray()
        self.requests = requests

    def feed(self, data):
        self.data += data
        while self.data:
            try:
                value, end = self.request() if self.requests else self.frame(0)
            except Partial:
                return
            raw = bytes(self.data[:end])
            del self.data[:end]
            yield value, raw

    def request(self):
        if self.data[:1] == b"*":
            return self.frame(0)
        line, end = self.line(0)
        return line.split(), end

    def line(self, at):
        end = self.data.find(b"\r\n", at)
        if end < 0:
            raise Partial
        return self.data[at:end].decode(errors="surrogateescape"), end + 2

    def text(self, size, at):
        if len(self.data) < at + size + 2:
            raise Partial
        return self.data[at : at + size].decode(errors="surrogateescape"), at + size + 2

    def several(self, count, at):
        values = []
        for _ in range(count):
            value, at = self.frame(at)
            values.append(value)
        return values, at

    def frame(self, at):
        if at >= len(self.data):
            raise Partial
        kind = chr(self.data[at])
        line, at = self.line(at + 1)
        match kind:
            case "+" | "(":
                return line, at
            case "-":
                return Error(line), at
            case ":":
                return int(line), at
            case ",":
                return float(line), at
            case "#":
                return line == "t", at
            case "_":
                return None, at
        size = int(line)
        if size < 0:
            return None, at
        match kind:
            case "$" | "!" | "=":
                value, at = self.text(size, at)
                return (Error(value) if kind == "!" else value[4:] if kind == "=" else value), at
            case "*" | "~":
                return self.several(size, at)
            case ">":
                values, at = self.several(size, at)
                return Push(values), at
            case "%" | "|":
                values, at = self.several(2 * size, at)
                if kind == "|":  # an attribute: what it is about follows
                    return self.frame(at)
                return dict(zip(map(str, values[::2]), values[1::2])), at
        raise ValueError(f"no frame of RESP begins with {kind!r}")

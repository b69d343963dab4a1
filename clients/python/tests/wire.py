"""A session without a server."""

from rlock import _ask, _core, _resp
from rlock._states import Request


class Wire:
    """A session that is spoken to as a server would."""

    def __init__(self, **options):
        self.core = _core.Core(5, **options)
        self.connect(100.0)

    def connect(self, at, module=True):
        self.core.began(at)
        channel = self.core.channel.encode()
        assert self.sent()[:2] == ["CLIENT SETNAME " + _ask.NAME, f"SUBSCRIBE {self.core.channel}"]
        reply = b"*1\r\n*1\r\n:1\r\n" if module else b"*1\r\n_\r\n"
        self.says(b"+OK\r\n>3\r\n$9\r\nsubscribe\r\n$%d\r\n%b\r\n:1\r\n" % (len(channel), channel) + reply, at)

    def says(self, reply, at):
        self.core.receive(reply, at)

    def ask(self, at, key="k", **options):
        request = Request(_ask.ask(key, **options))
        request.begin(at, 5)
        self.core.adopt(request, at)
        return request

    def sent(self):
        out, self.core.out[:] = bytes(self.core.out), b""
        return [b" ".join(words).decode() for words in _resp.Parser().feed(out)]

    def until(self, at):
        """What is sent until then, unanswered."""
        while (due := self.core.next_time()) <= at:
            self.core.tick(due)
        return self.sent()

"""What a session says of a release, without a server."""

import pytest
from wire import Wire

from rlock import _hold
from rlock._states import Pending


class Loop:
    forked = False

    def post(self, step):
        step(100)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"lease": 1, "watchdog": False}, "lease"), ({"max": 1}, "max")],
)
@pytest.mark.parametrize("reply", [b":0\r\n", None])
def test_what_is_due_is_seen_before_the_loop_comes_to_it(options, reason, reply):
    """The process was stopped, and goes on. Whatever comes of the release: the program was not alone."""
    wire = Wire(patience=None)
    request = wire.ask(100, **options)
    wire.says(b":7\r\n", 100)
    wire.sent()
    hold, pending = _hold.Hold(request, Loop(), None), Pending()
    hold._release(pending, 104)
    assert wire.sent() == [f"RLOCK.RELEASE k {request.owner} IFTOKEN 7"]
    if reply:
        wire.says(reply, 104)
    else:
        wire.core.ended(104, "cut")
    assert pending.finished and pending.error.reason == reason

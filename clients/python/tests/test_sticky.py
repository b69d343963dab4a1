"""Sticky locks: what the scenarios of clients/conformance cannot say."""

import asyncio
import contextlib
import gc
import threading
import time
from datetime import timedelta

import pytest
import redis
import redis.asyncio
from servers import InThread, until
from test_fork import in_child
from test_interrupted import Stop, at_every_line, at_every_suspension

import rlock
import rlock.asyncio

# What a finaliser raises is not reported, but it does what it has to.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def faced(face, server):
    return face(server.port)


def test_arguments(faced, locks, key):
    for wrong in ({"idle": 0}, {"idle": 1.1}, {"wait": -1}, {"wait": float("inf")}, {"lease": 0}, {"idle": float("nan")}):
        with pytest.raises(ValueError):
            faced.sticky(key, **wrong)
    for wrong in ("", b""):
        with pytest.raises(ValueError):
            faced.sticky(wrong)
    for wrong in (["a", "b"], None, 7):
        with pytest.raises(TypeError):
            faced.sticky(wrong)
    with pytest.raises(TypeError):
        faced.sticky(key, idle="1")
    with pytest.raises(TypeError):
        faced.sticky(key, mode="read")
    sticky = faced.sticky(key, idle=timedelta(milliseconds=500), wait=timedelta(seconds=9), lease=timedelta(seconds=9))
    assert sticky.key == key and key in repr(sticky)
    faced.use(sticky, lambda use: use.key == key or pytest.fail("another key"))


def test_a_use_is_entered_once_and_only_so(locks, key):
    sticky = locks.sticky(key)
    use = sticky.use()
    with pytest.raises(RuntimeError):
        use.token()
    with use:
        assert use.owner
        with pytest.raises(RuntimeError), use:
            pass
    with pytest.raises(rlock.Lost):
        use.token()  # it is over
    with sticky.use():
        pass


def test_no_wait(faced, server, locks, key):
    sticky = faced.sticky(key, wait=0)
    faced.use(sticky)
    faced.close_sticky(sticky)
    with locks.hold(key):
        sticky = faced.sticky(key, wait=0)
        with pytest.raises(rlock.NotAcquired) as refused:
            faced.use(sticky)
        assert refused.value.held_by is None and until(lambda: server.waiters(key) == 0)
    faced.use(sticky)


@pytest.mark.parametrize("users", [1, 2])
def test_who_polls_has_a_chance(faced, server, key, users):
    """However busy it is, and though nobody can say that he waits."""
    sticky, stop = faced.sticky(key), threading.Event()

    def uses():
        count = 0
        while not stop.is_set():
            faced.use(sticky)
            count += 1
        return count

    busy = [InThread(uses) for _ in range(users)]
    try:
        for n in range(3):
            owner = f"poller-{n}"
            assert until(lambda: server.admin.execute_command("RLOCK.ACQUIRE", key, owner, 60_000) is not None, 60)
            server.say(f"RLOCK.RELEASE {key} {owner}")
    finally:
        stop.set()
    assert all(one.result() > 0 for one in busy)


def test_many_threads_count_exactly(server, faced, face, key):
    """A number that nobody guards but the lock, in two processes' places."""
    number = [0]

    def add(use):
        was = number[0]
        time.sleep(0.0001)
        number[0] = was + 1

    def adds(one, sticky, times):
        for _ in range(times):
            one.use(sticky, add)

    other = face(server.port)
    ours, theirs = faced.sticky(key), other.sticky(key)
    threads = [InThread(lambda: adds(faced, ours, 60)) for _ in range(6)]
    threads += [InThread(lambda: adds(other, theirs, 60)) for _ in range(3)]
    for thread in threads:
        thread.result(60)
    assert number[0] == 9 * 60


def test_tokens_rise_over_all_who_use_it(server, faced, locks, key):
    tokens, stop, sticky = [], threading.Event(), faced.sticky(key)

    def uses():
        while not stop.is_set():
            faced.use(sticky, lambda use: tokens.append(faced.token(use)))

    def others():
        for _ in range(30):
            with locks.hold(key, wait=20) as hold:
                tokens.append(hold.token)

    busy = [InThread(uses) for _ in range(3)]
    InThread(others).result(60)
    assert until(lambda: len(tokens) > 60)
    stop.set()
    for one in busy:
        one.result()
    assert tokens == sorted(set(tokens))


def test_a_token_that_gets_no_reply(server, proxy, face, key):
    faced = face(proxy.port, timeout=5)
    sticky = faced.sticky(key, lease=60)
    first = faced.use(sticky, faced.token)

    def body(use):
        proxy.frozen.set()
        with pytest.raises(rlock.ConnectionError):
            faced.token(use)
        proxy.frozen.clear()
        return use.owner

    owner = faced.use(sticky, body)
    tokens = faced.use(sticky, lambda use: (use.owner, faced.token(use)))
    assert tokens[0] != owner and tokens[1] > first


def test_what_was_lost_is_known_before_it_is_used(server, proxy, face, key):
    """A process that was asleep asks before it uses what it had."""
    faced = face(proxy.port)
    sticky = faced.sticky(key, lease=60)
    before = faced.use(sticky, lambda use: use.owner)
    proxy.frozen.set()
    server.say(f"RLOCK.FORCE {key}")
    sticky._stay.beat.proof -= 31
    sticky._stay.until += 60  # it is that alone which counts
    uses = InThread(lambda: faced.use(sticky, lambda use: use.owner))
    time.sleep(0.1)
    assert uses.thread.is_alive()
    proxy.frozen.clear()
    assert uses.result() != before


def test_a_use_that_was_asleep_asks_at_its_end(server, proxy, face, key):
    faced = face(proxy.port)
    sticky = faced.sticky(key, lease=60)

    def body(use):
        proxy.frozen.set()
        server.say(f"RLOCK.FORCE {key}")
        sticky._stay.beat.proof -= 31
        threading.Timer(0.2, proxy.frozen.clear).start()

    with pytest.raises(rlock.Lost) as lost:
        faced.use(sticky, body)
    assert lost.value.reason == "forced"
    sticky._stay.beat.proof -= 31
    faced.use(sticky)  # so does one that has lost nothing

    def asleep(use):
        sticky._stay.beat.proof -= 31

    faced.use(sticky, asleep)


def test_uses_never_overlap_though_the_lock_is_lost(server, locks, key):
    sticky, order = locks.sticky(key), []

    def second():
        with sticky.use() as use:
            order.append("second")
            assert use.lost.reason is None

    with pytest.raises(rlock.Lost), sticky.use() as use:
        waits = InThread(second)
        assert until(lambda: sticky._stay.line)
        server.say(f"RLOCK.FORCE {key}")
        assert use.lost.wait(20) and use.lost.reason == "forced"
        assert waits.thread.is_alive()
        order.append("first")
    waits.result()
    assert order == ["first", "second"]


def test_a_task_is_cancelled_when_it_loses_it(server, key):
    async def main():
        async with rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port)) as locks:
            sticky = locks.sticky(key)
            with pytest.raises(rlock.Lost):
                async with sticky.use() as use:
                    server.say(f"RLOCK.FORCE {key}")
                    await asyncio.sleep(60)
            assert use.lost.reason == "forced"
            async with sticky.use():
                pass

            async def body():
                async with sticky.use():
                    await asyncio.sleep(60)

            task = asyncio.create_task(body())
            await asyncio.sleep(0.05)
            task.cancel()  # from outside: it is a cancellation
            with pytest.raises(asyncio.CancelledError):
                await task
            async with sticky.use() as use:
                await use.token()

    asyncio.run(main())


def test_what_the_body_raises_comes_out(faced, key):
    sticky = faced.sticky(key)

    def body(use):
        raise KeyError("mine")

    for _ in range(3):
        with pytest.raises(KeyError):
            faced.use(sticky, body)
    faced.use(sticky)


def test_a_use_that_nobody_refers_to_is_over(server, locks, key):
    sticky = locks.sticky(key)
    for _ in range(3):
        use = sticky.use()
        use.__enter__()
        del use
        gc.collect()
        InThread(lambda: sticky.use().__enter__()).result()
        gc.collect()
    sticky.close()
    assert server.is_free(key)


def test_the_next_use_of_a_thread_that_has_dropped_one_waits(locks, key):
    sticky = locks.sticky(key)
    for _ in range(300):
        sticky.use().__enter__()  # its end is only posted
        with sticky.use():
            pass


def test_a_scope_may_be_left_in_another_thread(locks, key):
    """As in a framework that runs both halves of a generator in threads of a pool."""
    sticky = locks.sticky(key)
    use = sticky.use()
    InThread(use.__enter__).result()
    second = InThread(sticky.use().__enter__)  # of this one, which begins another use meanwhile
    assert until(lambda: sticky._stay.line) and second.thread.is_alive()
    InThread(lambda: use.__exit__(None, None, None)).result()
    second.result().__exit__(None, None, None)


def test_a_use_within_a_use(locks, key):
    sticky, other = locks.sticky(key), locks.sticky(f"{key}:other")
    with sticky.use() as outer:
        with pytest.raises(rlock.Error, match="within a use"), sticky.use():
            pass
        with other.use():
            pass
        assert outer.lost.reason is None
        waits = InThread(sticky.use().__enter__)  # in another thread it waits
        assert until(lambda: sticky._stay.line)
    waits.result().__exit__(None, None, None)


def test_close_within_a_use_does_not_wait_for_it(server, faced, key):
    sticky = faced.sticky(key)
    faced.use(sticky, lambda use: faced.close_sticky(sticky))
    assert until(lambda: server.is_free(key))
    with pytest.raises(rlock.ConnectionError):
        faced.use(sticky)
    faced.close_sticky(sticky)


def test_close_waits_for_the_release_that_is_under_way(server, locks, key):
    sticky = locks.sticky(key)
    with sticky.use():
        pass
    closes = [InThread(sticky.close) for _ in range(8)]
    for one in closes:
        one.result()
    assert server.is_free(key)
    sticky = locks.sticky(key)
    with sticky.use():
        sticky.close()
    sticky.close()
    assert server.is_free(key)


def test_close_without_a_connection_ends(server, proxy, key):
    with rlock.Locks(redis.Redis(port=proxy.port), timeout=5) as locks:
        sticky = locks.sticky(key, lease=60)
        with sticky.use():
            pass
        proxy.close()
        sticky.close()
        with pytest.raises(rlock.ConnectionError), sticky.use():
            pass


def test_fork(server, locks, key):
    sticky = locks.sticky(key)
    with sticky.use() as use:

        def look():
            seen = [use.lost.reason]
            try:
                use.__exit__(None, None, None)
            except rlock.Lost as lost:
                seen.append(lost.reason)
            return seen

        assert in_child(look) == ["fork", "fork"]
        owner = use.owner

    def own():
        with sticky.use() as use:
            return [use.owner, use.token() > 0]

    child, rises = in_child(own)  # the parent's goes to whoever waits
    assert rises and child != owner
    with sticky.use() as use:
        assert use.owner not in (owner, child)


def test_two_event_loops(server, key):
    """Each has it for itself."""
    numbers = []
    locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port))
    sticky = locks.sticky(key)

    async def uses():
        for _ in range(50):
            async with sticky.use() as use:
                numbers.append(await use.token())

    both = [InThread(lambda: asyncio.run(uses())) for _ in range(2)]
    for one in both:
        one.result(60)
    assert numbers == sorted(set(numbers)) and len(numbers) == 100


@pytest.mark.parametrize("how", ["first", "again", "waits"])
def test_an_exception_at_every_line(server, key, how):
    """Nothing of the use stays, whatever strikes where."""
    with rlock.Locks(redis.Redis(port=server.port)) as locks:
        stickies, users = [locks.sticky(key)], []

        def short(began):
            with stickies[0].use():
                began.set()
                time.sleep(0.005)

        def run():
            if how == "first":
                stickies[0] = None
                stickies[0] = locks.sticky(key)
            if how == "waits":
                began = threading.Event()
                users.append(InThread(lambda: short(began)))
                began.wait()
            with stickies[0].use() as use:
                assert use.token() and use.lost.reason is None

        def check(where):
            sticky = stickies[0] or locks.sticky(key)

            def other():
                with sticky.use() as use:
                    return use.token() > 0

            assert InThread(other).result(), where
            while users:
                users.pop().result()
            if how == "first":
                sticky.close()
                assert until(lambda: server.is_free(key)), where

        if how == "again":
            run()
        assert at_every_line(run, check) > 15
        stickies[0].close()
        assert server.is_free(key)


def test_a_cancellation_at_every_suspension(server, key):
    async def main():
        async with rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port)) as locks:
            sticky = locks.sticky(key)

            async def run():
                async with sticky.use() as use:
                    await use.token()
                    await use.token()
                await sticky.close()

            async def check(at):
                nonlocal sticky
                try:
                    async with sticky.use() as use:
                        assert await use.token()
                except rlock.ConnectionError:
                    pass  # it was at its close
                await sticky.close()
                assert server.is_free(key)
                sticky = locks.sticky(key)

            assert await at_every_suspension(run, check) > 0

    asyncio.run(main())


def test_what_a_signal_raises_in_a_tight_loop(server, key):
    """As a soft time limit does, at whichever instruction it comes."""
    import signal

    struck = False

    def strike(*_):
        nonlocal struck
        struck = True
        raise Stop

    def uses(sticky, after):
        nonlocal struck
        struck = False
        with contextlib.suppress(Stop):
            signal.setitimer(signal.ITIMER_REAL, after)
            while not struck:  # in a finaliser it is not seen
                with sticky.use():
                    pass

    before = signal.signal(signal.SIGALRM, strike)
    try:
        with rlock.Locks(redis.Redis(port=server.port)) as locks:
            sticky = locks.sticky(key)
            for n in range(150):
                uses(sticky, 0.001 + n * 0.00001)
                InThread(lambda: sticky.use().__enter__().__exit__(None, None, None)).result()
            sticky.close()
            assert server.is_free(key)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_use_that_is_given_up_lets_others_have_it(server, locks, key):
    """The last one that waited: it goes at once to who waits elsewhere, not when its time here is over."""
    sticky = locks.sticky(key)
    with sticky.use() as use:
        sticky._stay.half += 60
        waits = InThread(sticky.use().__enter__)
        assert until(lambda: sticky._stay.line)
        other = InThread(lambda: locks.acquire(key, wait=20))
        assert until(lambda: sticky._stay.held.hint.said > 0)
        (waiting,) = sticky._stay.line
        locks._loop().post(lambda at: sticky._stay.give_up(waiting, at))
        assert until(lambda: not sticky._stay.until)
        assert use.lost.reason is None
    other.result().release()
    del waits


def test_a_use_within_uses_of_two(locks, key):
    one, other = locks.sticky(key), locks.sticky(f"{key}:other")
    for _ in range(3):
        with one.use():
            with other.use():
                pass
            with pytest.raises(rlock.Error, match="within a use"), one.use():
                pass
            with other.use():
                with pytest.raises(rlock.Error, match="within a use"), one.use():
                    pass


def test_close_when_the_locks_are_closed_and_in_a_child(server, face, locks, key):
    faced = face(server.port)
    sticky = faced.sticky(key)
    faced.use(sticky)
    faced.do(faced.locks.close()) if hasattr(faced, "do") else faced.locks.close()
    faced.close_sticky(sticky)
    mine = locks.sticky(f"{key}:child")
    with mine.use():
        pass
    mine.close()

    def look():
        try:
            with mine.use():
                return "used"
        except rlock.ConnectionError:
            return "closed"

    assert in_child(look) == "closed"


def test_event_loops_that_are_closed_are_forgotten(server, key):
    locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=server.port))
    sticky = locks.sticky(key)

    async def use():
        async with sticky.use():
            pass
        await locks._loops.here().closed(1)

    for _ in range(4):
        asyncio.run(use())
    assert len(sticky._stays) <= 2

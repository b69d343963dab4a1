"""A program that stands still for longer than its patience loses what somebody waits for, and nothing else."""

import json
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest
import redis
from faces import Tasks, Threads
from plain import LOAD, Plain
from servers import InThread, Server, ends_with_us, until
from wire import Wire

import rlock
import rlock._protocol
from rlock._beat import Beat, Counted


def is_end(line):
    return line.startswith(("released", "raised"))


class Program:
    """Another process that holds the lock: see stopped.py."""

    def __init__(self, server, key, face, of_locks, of_lock):
        words = [server.port, key, face, json.dumps(of_locks), json.dumps(of_lock)]
        self.process = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__).parent / "stopped.py"), *map(str, words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=ends_with_us,
        )  # fmt: skip
        self.said = []
        threading.Thread(target=self.read, daemon=True).start()
        assert until(lambda: "held" in self.said, 60)

    def read(self):
        for line in self.process.stdout:
            self.said.append(line.strip())

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def reason(self):
        before = len(self.said)
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        assert until(lambda: len(self.said) > before)
        return self.said[before]

    def end(self):
        """How its scope ended."""
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        # What a callback says may come behind it, for it has a thread of its own.
        assert until(lambda: any(map(is_end, self.said))), self.said
        return next(filter(is_end, self.said))


@pytest.fixture(params=["threads", "tasks"])
def program(request, server, key):
    started = []

    def start(of_locks, of_lock, key=key):
        started.append(Program(server, key, request.param, of_locks, of_lock))
        return started[-1]

    yield start
    for one in started:
        one.go_on()
        one.process.kill()
        one.process.wait()


def waits(server, locks, key):
    """Somebody who waits for the lock, and when it had it."""

    def work():
        hold = locks.acquire(key, wait=60)
        return hold, time.monotonic()

    waiter = InThread(work)
    assert until(lambda: server.waiters(key) == 1)
    return waiter


def stays(server, key, seconds):
    owner = server.info(key)[b"holders"][0][b"owner"]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert [holder[b"owner"] for holder in server.info(key)[b"holders"]] == [owner]
        time.sleep(0.05)


def test_stopped_for_longer_than_its_patience(server, locks, key, program):
    holder = program({"patience": 4}, {"lease": 4})
    waiter = waits(server, locks, key)
    stays(server, key, 6)  # it is alive
    stopped = time.monotonic()
    holder.stop()
    hold, had = waiter.result(30)
    assert had - stopped > 1.2  # the last beat was at most a third of the lease old
    holder.go_on()
    assert until(lambda: "lost silent" in holder.said)
    assert holder.end() == "raised silent"
    assert hold.lost.reason is None
    hold.release()


def test_stopped_for_a_shorter_time(server, locks, key, program):
    holder = program({"patience": 60}, {"lease": 4})
    waiter = waits(server, locks, key)
    holder.stop()
    stays(server, key, 7)
    holder.go_on()
    assert holder.reason() == "None"
    stays(server, key, 1)
    assert holder.end() == "released"
    waiter.result()[0].release()


def test_nobody_waits(server, locks, key, program):
    holder = program({"patience": 0.5}, {"lease": 4})
    holder.stop()
    stays(server, key, 6)
    holder.go_on()
    assert holder.reason() == "None"
    stays(server, key, 1)
    assert holder.end() == "released"
    # Who comes when it is too late has it at once.
    holder = program({"patience": 0.5}, {"lease": 4})
    holder.stop()
    stays(server, key, 6)
    hold = locks.acquire(key, wait=20)
    holder.go_on()
    assert until(lambda: "lost silent" in holder.said)
    assert holder.end() == "raised silent"
    hold.release()


def test_the_patience_is_the_lease_at_least(server, locks, key, program):
    holder = program({"patience": 0.1}, {"lease": 8})
    waiter = waits(server, locks, key)
    stays(server, key, 1)
    holder.stop()
    stays(server, key, 4)  # a beat is 2.7 s old at most
    waiter.result(30)[0].release()
    holder.go_on()
    assert holder.end() == "raised silent"


def test_of_several_locks_the_loss_of_one_is_the_loss_of_all(server, locks, key, program):
    keys = [f"{{{key}}}:1", f"{{{key}}}:2"]
    holder = program({"patience": 1}, {"lease": 4}, ",".join(keys))
    waiter = waits(server, locks, keys[1])
    holder.stop()
    hold, _ = waiter.result(30)
    holder.go_on()
    assert holder.end() == "raised silent"
    assert until(lambda: server.is_free(keys[0]))
    hold.release()


def test_no_patience_is_as_it_was(server, locks, key, program):
    holder = program({"patience": None}, {"lease": 4})
    waiter = waits(server, locks, key)
    holder.stop()
    stays(server, key, 7)
    holder.go_on()
    assert holder.reason() == "None" and holder.end() == "released"
    waiter.result()[0].release()


def test_a_loop_that_is_blocked(server, locks, key):
    """It is the event loop that shows life, and no thread of the client's."""
    tasks = Tasks(server.port, patience=1)
    hold = tasks.acquire(key, lease=4)
    waiter = waits(server, locks, key)
    stays(server, key, 6)
    ends = threading.Event()
    tasks.loop.call_soon_threadsafe(ends.wait)
    of_waiter, _ = waiter.result(30)
    ends.set()
    assert until(lambda: tasks.reason(hold) == "silent")
    with pytest.raises(rlock.Lost, match="silent"):
        tasks.release(hold)
    of_waiter.release()
    tasks.close()


def test_a_thread_that_is_busy_is_no_silence(server, locks, key):
    """The process shows life, whatever its threads do."""
    with rlock.Locks(redis.Redis(port=server.port), patience=1) as held, held.hold(key, lease=4):
        waiter = waits(server, locks, key)
        time.sleep(6)
    waiter.result()[0].release()


def last_command(server, user="default"):
    """Of the one session of this user, and its id."""
    sessions = [
        one for one in server.admin.client_list() if one["name"].startswith("rlock-python") and one["user"] == user
    ]
    assert len(sessions) == 1
    return sessions[0]["cmd"], sessions[0]["id"]


def test_a_beat_stands_for_a_ping(own_server, face, key):
    locks = face(own_server.port, patience=5)
    hold = locks.acquire(key, lease=4)
    assert until(lambda: last_command(own_server)[0] == "rlock.heartbeat")

    def stats(command):
        return own_server.admin.info("commandstats")[command]

    beats, pings = stats("cmdstat_rlock.heartbeat")["calls"], stats("cmdstat_ping")
    assert until(lambda: stats("cmdstat_rlock.heartbeat")["calls"] >= beats + 2)
    assert stats("cmdstat_ping") == pings  # the test's own, at the start
    locks.release(hold)


NO_BEAT = {"no_beat": "-rlock.heartbeat", "neither": "-rlock.heartbeat -ping"}


@pytest.mark.parametrize("rights", NO_BEAT)
def test_a_user_who_may_not(own_server, face, key, rights):
    """It is shown by PING that the program and the server live, over the same connection. (An error shows it too.)"""
    own_server.say(f"ACL SETUSER low on nopass ~* &* +@all {NO_BEAT[rights]}")
    of_low = face(own_server.port, user="low", patience=0.5)
    with rlock.Locks(redis.Redis(port=own_server.port)) as others:
        hold = of_low.acquire(key, lease=4)
        session = last_command(own_server, "low")[1]
        waiter = waits(own_server, others, key)
        stays(own_server, key, 6)
        assert of_low.reason(hold) is None and last_command(own_server, "low")[1] == session
        if rights != "neither":
            assert until(lambda: last_command(own_server, "low")[0] == "ping")
        of_low.release(hold)
        waiter.result()[0].release()


def test_a_right_that_is_taken_and_given(own_server, face, key):
    """It is asked anew on the next connection, and no sooner."""
    locks = face(own_server.port)
    hold = locks.acquire(key, lease=4)
    assert until(lambda: last_command(own_server)[0] == "rlock.heartbeat")
    own_server.say("ACL SETUSER default -rlock.heartbeat")
    assert until(lambda: last_command(own_server)[0] == "ping")
    own_server.say("ACL SETUSER default +rlock.heartbeat")
    stays(own_server, key, 4)
    assert last_command(own_server)[0] == "ping" and locks.reason(hold) is None
    own_server.admin.client_kill_filter(_id=last_command(own_server)[1])
    assert until(lambda: locks.reason(hold) == "connection")
    hold = locks.acquire(f"{key}:2", lease=4)
    assert until(lambda: last_command(own_server)[0] == "rlock.heartbeat")
    locks.release(hold)


def test_beats_while_the_client_renews(tmp_path, key, monkeypatch, face):
    """A hold of several keys from before the module came is renewed by the client: that shows no life to the server."""
    monkeypatch.setattr(rlock._protocol, "FIND", 0.2)
    server = Plain(tmp_path, *LOAD)
    try:
        faced = face(server.port, patience=1)
        several = faced.acquire([f"{key}:1", f"{key}:2"], lease=5)
        server.say(f"MODULE LOAD {Server.words[1]}")
        assert until(lambda: faced.locks.backend == "module")
        hold = faced.acquire(key, lease=6)
        with rlock.Locks(redis.Redis(port=server.port)) as others:
            waiter = waits(server, others, key)
            stays(server, key, 8)
            assert faced.reason(hold) is faced.reason(several) is None
            faced.release(hold)
            faced.release(several)
            waiter.result()[0].release()
    finally:
        server.kill()


# Without a server


def test_the_first_beat_comes_before_the_first_request():
    wire = Wire()
    assert wire.sent() == ["RLOCK.HEARTBEAT 30000"]
    wire.core.ended(101, "cut")
    wire.ask(101, wait=10, lease=40)
    wire.connect(101.5)
    beat, acquire = wire.sent()
    assert beat == "RLOCK.HEARTBEAT 40000" and acquire.startswith("RLOCK.ACQUIRE k ")


def test_a_longer_lease_is_said_at_once():
    wire = Wire(patience=5000)
    wire.says(b"+OK\r\n", 100)
    assert wire.sent() == ["RLOCK.HEARTBEAT 5000"]
    wire.ask(101, lease=12)
    wire.core.tick(101)
    acquire, beat = wire.sent()
    assert acquire.startswith("RLOCK.ACQUIRE") and beat == "RLOCK.HEARTBEAT 12000"
    wire.says(b":7\r\n+OK\r\n", 101)
    assert wire.until(104.9) == [] and wire.until(105.1) == ["RLOCK.HEARTBEAT 12000"]
    # One without watchdog cannot be lost by silence, however long it is.
    wire.ask(105.1, key="plain", lease=3600, watchdog=False)
    wire.core.tick(105.1)
    assert len(wire.sent()) == 1


def test_an_older_module_is_found_out_by_each_connection():
    for said in (b"-ERR unknown command 'RLOCK.HEARTBEAT', with args beginning with: '30000'\r\n", b"-NOPERM no\r\n"):
        wire = Wire()
        wire.ask(100, lease=10)
        assert wire.sent()[0] == "RLOCK.HEARTBEAT 30000"
        wire.says(said + b":7\r\n", 100)
        assert wire.sent() == ["PING"]
        assert wire.core.backend == "module" and len(wire.core.holds) == 1
        wire.says(b"+PONG\r\n", 100)
        assert wire.until(104) == ["PING"]
        wire.core.ended(105, "cut")
        wire.connect(105)
        assert wire.sent()[0] == "RLOCK.HEARTBEAT 30000"


def test_another_error_is_no_reason_to_stop():
    wire = Wire()
    wire.ask(100, lease=9)
    wire.says(b"-BUSY busy\r\n:7\r\n", 100)
    wire.sent()
    assert wire.until(103.5) == ["RLOCK.HEARTBEAT 30000"]


@pytest.mark.parametrize("options", [{"patience": None}, {}])
def test_who_needs_none_says_none(options):
    wire = Wire(**options)
    if not options:  # without the module
        wire.core.ended(100, "cut")
        wire.core.out.clear()
        wire.connect(100, module=False)
    wire.sent()
    assert not wire.core.beats and wire.core.beat.ask_at() == 110


def test_patience():
    beat = Beat(1)
    assert beat.patience() == 300
    beat.add(Counted(5000, True), 0)
    beat.add(Counted(5000, True), 0)
    beat.add(Counted(9000, False), 0)
    assert beat.patience() == 5000
    beat.remove(Counted(5000, True))
    assert beat.patience() == 5000
    beat.remove(Counted(5000, True))
    assert beat.patience() == 300

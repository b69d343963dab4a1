"""What hurts clients without QUEUE, NOTIFY, ONCE and CANCEL does not hurt redis-py."""
import sys
import threading
import time
import uuid
from concurrent.futures import Future

import redis

import first
import report
from session import Session

PORT, LOSING = int(sys.argv[1]), int(sys.argv[2])
LEASE = 60_000

admin = redis.Redis(port=PORT)


def owner():
    return f"check:{uuid.uuid4().hex}"


def take(key, holder="other"):
    admin.execute_command("RLOCK.ACQUIRE", key, holder, LEASE)


def give(key, holder="other"):
    return admin.execute_command("RLOCK.RELEASE", key, holder)


def info(key):
    return admin.execute_command("RLOCK.INFO", key)


def waiters(key):
    return info(key)[b"waiters"]


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (good := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return good


def many_waits(number):
    session, keys = Session(admin), [f"many:{i}" for i in range(200)]
    for key in keys:
        take(key)
    connections = admin.info("clients")["connected_clients"]
    asked = [(key, mine := owner(), session.acquire(key, mine, LEASE, "QUEUE", 60_000)) for key in keys]
    queued = sum(reply == b"QUEUED" for _, _, (reply, _) in asked)
    began = time.monotonic()
    session.call("SET", "beside", "1")
    beside = (time.monotonic() - began) * 1000
    grown = admin.info("clients")["connected_clients"] - connections
    for key in keys:
        give(key)
    notified = [inbox.get(timeout=20) for _, _, (_, inbox) in asked]
    granted = sum(word == "granted" and int(rest) > 0 for word, rest in notified)
    freed = sum(session.call("RLOCK.RELEASE", key, mine) == 0 for key, mine, _ in asked)
    report.line(
        number,
        "200 waits on one connection, beside other commands",
        f"{queued} queued, SET in {beside:.1f} ms, {granted} granted, {freed} released, {grown} more connections",
        (queued, granted, freed, grown) == (200, 200, 200, 0),
    )


def place(key, mine):
    """Where in the queue, and by which connection."""
    queue = admin.execute_command("RLOCK.WAITERS", key)
    places = [(i, w[b"client-id"]) for i, w in enumerate(queue) if w[b"owner"].decode() == mine]
    return places[0] if places else (None, None)


def asked():
    return admin.info("commandstats")["cmdstat_rlock.acquire"]["calls"]


def own_time_out(number):
    session = Session(admin)
    retried(number, session)
    blocked_for_longer(number, session)
    session.close()


def retried(number, session):
    key, mine = "again", owner()
    take(key)
    reply, inbox = session.acquire(key, mine, LEASE, "QUEUE", 30_000)
    session.acquire(key, owner(), LEASE, "QUEUE", 30_000)
    again, second = session.acquire(key, mine, LEASE, "QUEUE", 30_000)
    first, older = place(key, mine)[0], inbox.get(timeout=20)
    give(key)
    granted = second.get(timeout=20)[0]
    holds = info(key)[b"holders"][0][b"holds"]
    report.line(
        number,
        "a queued request that is retried keeps its place",
        f"{reply}, {again}, place {first}, {granted}, {holds} hold; the older {older[0]} {older[-1][:20]}",
        (again, first, granted, holds, older[0]) == (b"QUEUED", 0, "granted", 1, "error"),
    )


def blocked_for_longer(number, session):
    """redis-py waits 5 s for a reply, closes its connection, and sends the command again."""
    key, mine, behind = "block", owner(), owner()
    take(key)
    words = ("RLOCK.ACQUIRE", key, mine, LEASE, "BLOCK", 10_000, "ONCE")
    blocked = InThread(lambda: redis.Redis(port=PORT).execute_command(*words))
    until(lambda: waiters(key) == 1)
    session.acquire(key, behind, LEASE, "QUEUE", 30_000)
    _, first = place(key, mine)
    until(lambda: place(key, mine)[1] not in (first, None))
    at, _ = place(key, mine)
    give(key)
    token, holds = blocked.result(), info(key)[b"holders"][0][b"holds"]
    report.line(
        number,
        "BLOCK longer than the time-out is sent again by a new connection: in its place",
        f"place {at}, token {token}, {holds} hold",
        at == 0 and token > 0 and holds == 1,
    )


def first_program(number):
    """It uses nothing but redis-py's defaults."""
    tokens = []
    take("first")
    waits = InThread(lambda: first.exclusively(redis.Redis(port=PORT), "first", tokens.append))
    until(lambda: waiters("first") == 1)
    give("first")
    waited = waits.result()
    take("first")
    in_vain = first.exclusively(redis.Redis(port=PORT), "first", tokens.append)
    left = waiters("first")
    lost = first.exclusively(redis.Redis(port=LOSING), "cut:first", tokens.append)
    free = info("cut:first")[b"mode"]
    report.line(
        number,
        "the first program of docs/clients.md: it waits, gives up in time, and a lost reply is nothing",
        f"{waited}, {in_vain} with {left} left, {lost} and {free}; tokens {tokens}",
        (waited, in_vain, left, lost, free, len(tokens)) == (True, False, 0, True, b"free", 2),
    )


def lost_reply(number):
    mine, sent = owner(), asked()
    words = ("RLOCK.ACQUIRE", "cut:once", mine, LEASE, "ONCE")
    token = redis.Redis(port=LOSING).execute_command(*words)
    holder, sent = info("cut:once")[b"holders"][0], asked() - sent
    report.line(
        number,
        "the reply is lost, the request that is retried has the token",
        f"sent {sent} times, token {token}, {holder[b'holds']} hold",
        sent == 2 and holder[b"token"] == token and holder[b"holds"] == 1,
    )


def gives_up(number):
    mine, session = owner(), Session(admin)
    take("up")
    inbox = session.acquire("up", mine, LEASE, "QUEUE", 60_000)[1]
    ended = session.call("RLOCK.CANCEL", "up", mine)
    notified, left = inbox.get(timeout=20), waiters("up")
    impatient = redis.Redis(port=PORT, socket_timeout=0.3, retry=None)
    try:
        impatient.execute_command("RLOCK.ACQUIRE", "up", mine, LEASE, "BLOCK", 0)
        error = "none"
    except redis.TimeoutError:
        error = "TimeoutError"
    by_block = until(lambda: waiters("up") == 0)
    for _ in range(2):
        session.acquire("up", owner(), LEASE, "QUEUE", 60_000, "WATCHDOG")
    session.close()
    by_close = until(lambda: waiters("up") == 0)
    give("up")
    mode = info("up")[b"mode"]
    report.line(
        number,
        "who gives up leaves no waiter: CANCEL, a time-out that closes the connection, a close",
        f"CANCEL {ended}, {notified}, {left} left; {error}, gone: {by_block}; closed, gone: {by_close}; then {mode}",
        (ended, notified, left, error, by_block, by_close, mode) == (1, ("timeout",), 0, "TimeoutError", True, True, b"free"),
    )


def cancelled(number):
    """A thread cannot be stopped from outside; its wait can."""
    mine = owner()
    take("cancel")
    patient = redis.Redis(port=PORT, socket_timeout=None)
    words = ("RLOCK.ACQUIRE", "cancel", mine, LEASE, "BLOCK", 0, "ONCE")
    blocked = InThread(lambda: patient.execute_command(*words))
    until(lambda: waiters("cancel") == 1)
    ended = admin.execute_command("RLOCK.CANCEL", "cancel", mine)
    reply, left = blocked.result(), waiters("cancel")
    report.line(
        number,
        "CANCEL by another connection ends a thread's BLOCK",
        f"CANCEL {ended}, the thread got {reply}, {left} left",
        (ended, reply, left) == (1, None, 0),
    )


def force_one(number):
    session, keys = Session(admin), ["force:1", "force:2", "force:3"]
    client = session.call("CLIENT", "ID")
    holds = {key: session.acquire(key, owner(), LEASE, "WATCHDOG") for key in keys}
    admin.execute_command("RLOCK.FORCE", "force:2")
    notified = holds["force:2"][1].get(timeout=20)
    time.sleep(0.5)  # a connection that is to be closed would be by now
    watched = [info(key)[b"holders"][0][b"watchdog"] for key in ("force:1", "force:3")]
    same = session.call("CLIENT", "ID") == client
    report.line(
        number,
        "FORCE of one of three watchdog holds leaves two",
        f"notified {notified}, still held by {watched}, same connection: {same}",
        notified == ("lost", "forced") and watched == [client, client] and same,
    )
    session.close()


def loss_is_notified(number):
    session, mine = Session(admin), owner()
    token, deleted = session.acquire("loss:1", mine, LEASE)
    kept = session.acquire("loss:2", mine, LEASE, "WATCHDOG")[1]
    admin.delete("loss:1")
    notified = deleted.get(timeout=20)
    admin.client_kill_filter(_id=session.call("CLIENT", "ID"))
    closed = kept.get(timeout=20)
    try:
        session.call("PING")
        error = "none"
    except redis.ConnectionError:
        error = "ConnectionError"
    free = until(lambda: info("loss:2")[b"mode"] == b"free")
    after = Session(admin)
    newer = after.acquire("loss:1", owner(), LEASE)[0]
    after.close()
    report.line(
        number,
        "a loss is notified, a closed connection too, and nothing reconnects by itself",
        f"{notified}, {closed}, {error}, its watchdog hold ended: {free}, a new session has {newer}",
        (notified, closed, error, free) == (("lost", "deleted"), ("lost", "connection"), "ConnectionError", True)
        and newer > token,
    )


def one_owner(number):
    session, ann, bob = Session(admin), owner(), owner()
    first = session.acquire("one:1", ann, LEASE)[0]
    session.acquire("one:2", bob, LEASE)
    second = session.acquire("one:1", ann, LEASE)[0]
    session.acquire("one:2", ann, LEASE, "QUEUE", 10_000)
    try:
        refused = session.acquire("one:1", bob, LEASE, "QUEUE", 10_000)[0]
    except redis.ResponseError as error:
        refused = str(error)
    session.close()
    report.line(
        number,
        "one owner for each piece of work: no HELD, and DEADLOCK is raised",
        f"the same token: {first == second}; {refused[:60]}",
        first == second and refused.startswith("DEADLOCK"),
    )


class InThread:
    def __init__(self, work):
        self.future = Future()
        threading.Thread(target=lambda: self.future.set_result(work()), daemon=True).start()

    def result(self):
        return self.future.result(timeout=30)


CHECKS = (
    (1, many_waits),
    (2, own_time_out),
    (2, first_program),
    (3, lost_reply),
    (4, gives_up),
    (5, cancelled),
    (6, force_one),
    (7, loss_is_notified),
    (8, one_owner),
)
for number, check in CHECKS:
    try:
        check(number)
    except Exception:
        report.fault(number)
sys.exit(report.failed)

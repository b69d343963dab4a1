"""Slots that move, and nodes that fail over."""

import pytest
from cluster import Cluster
from faces import Tasks, Threads
from redis.crc import key_slot
from servers import InThread, until

import rlock


@pytest.fixture(params=[Threads, Tasks])
def face(request):
    return request.param


@pytest.fixture
def cluster(tmp_path, request):
    cluster = Cluster(tmp_path, **getattr(request, "param", {}))
    yield cluster
    cluster.kill()


with_replicas = pytest.mark.parametrize("cluster", [{"replicas": True}], indirect=True)


def channels(node):
    return [name.decode() for name in node.say("PUBSUB SHARDCHANNELS")]


def test_the_slot_of_the_channel_moves(cluster, face):
    here, there, _ = cluster.masters
    locks = face(here.port, cluster=True)
    key, other, awaited, plain = (cluster.key_at(0, prefix) for prefix in "kowp")
    hold, rest, lease = locks.acquire(key), locks.acquire(other), locks.acquire(plain, watchdog=False, lease=60)
    here.say(f"RLOCK.ACQUIRE {awaited} raw 60000")
    waits = InThread(lambda: locks.acquire(awaited, wait=60))
    assert until(lambda: here.waiters(awaited) == 1)
    (channel,) = channels(here)
    cluster.move(key_slot(channel.encode()), here, there)
    assert until(lambda: channels(here) and channels(here) != [channel])
    assert until(lambda: here.waiters(awaited) == 1)
    here.say(f"RLOCK.RELEASE {awaited} raw")
    locks.release(waits.result())
    assert [locks.reason(one) for one in (hold, rest, lease)] == [None] * 3
    here.say(f"RLOCK.FORCE {key}")
    here.say(f"RLOCK.FORCE {plain}")
    assert until(lambda: locks.reason(hold) == locks.reason(lease) == "forced")
    assert locks.reason(rest) is None
    locks.release(rest)
    locks.close()


@with_replicas
@pytest.mark.parametrize("how", ["takeover", "kill"])
def test_a_replica_takes_over(cluster, face, how):
    old, heir = cluster.masters[0], cluster.replicas[0]
    locks = face(cluster.masters[1].port, cluster=True, timeout=30)
    lost, awaited, plain = (cluster.key_at(0, prefix) for prefix in "lwp")
    hold, lease = locks.acquire(lost, lease=60), locks.acquire(plain, watchdog=False, lease=60)
    others = [locks.acquire(cluster.key_at(number), lease=60) for number in (1, 2)]
    old.say(f"RLOCK.ACQUIRE {awaited} raw 60000")
    waits = InThread(lambda: locks.acquire(awaited, wait=60))
    assert until(lambda: old.waiters(awaited) == 1)
    assert old.say("WAIT 1 10000") == 1
    if how == "takeover":
        heir.say("CLUSTER FAILOVER TAKEOVER")
    else:
        old.kill()
    assert until(lambda: locks.reason(hold) in ("connection", "demoted"))
    assert until(lambda: heir.admin.info("replication")["role"] == "master")
    assert until(lambda: heir.waiters(awaited) == 1)
    heir.say(f"RLOCK.RELEASE {awaited} raw")
    locks.release(waits.result())
    assert until(lambda: heir.is_free(lost))
    if how == "kill":  # nobody could say what became of it
        assert locks.reason(lease) is None
        locks.renew(lease, 120)
        assert heir.admin.pttl(plain) > 100_000
        locks.release(lease)
    assert until(lambda: heir.is_free(plain))
    with pytest.raises(rlock.Lost):
        locks.release(hold)
    assert [locks.reason(one) for one in others] == [None, None]
    for one in others:
        locks.release(one)
    locks.release(locks.acquire(lost, wait=20))
    locks.close()
    if how == "kill":
        old.start()

// Slots that move, and nodes that fail over.
import assert from 'node:assert/strict';
import { LostError } from 'rlock-client';
import { slotOf } from '../src/slots.js';
import { Cluster, keyAt } from './tools/cluster.js';
import { forEach } from './tools/libraries.js';
import { Server } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';

const channels = (node) => node.say('PUBSUB', 'SHARDCHANNELS');

for (const load of [0, 200]) {
  forEach(`the slot of the channel moves (${load} commands under way): holds stand, waits go on`, async (t, open) => {
    const cluster = await Cluster.start(t);
    const [here, there] = cluster.masters;
    const locks = open(here.port, { cluster: true, timeout: 30_000 });
    const [key, other, awaited, plain] = ['k', 'o', 'w', 'p'].map((kind) => keyAt(0, kind));
    const hold = await locks.acquire(key, { lease: 20_000 });
    const rest = await locks.acquire(other);
    const lease = await locks.acquire(plain, { watchdog: false, lease: 60_000 });
    await here.say('RLOCK.ACQUIRE', awaited, 'raw', 60_000);
    const wait = locks.acquire(awaited, { wait: 60_000 });
    await here.waiting(awaited, 1);
    const [channel] = await channels(here);
    // While commands are under way node-redis takes the server's word for a reply.
    let moved = load === 0;
    const work = [...Array(load).keys()].map(async (n) => {
      while (!moved) await (await locks.acquire(keyAt(0, `n${n}:`))).release();
    });
    await cluster.move(slotOf(channel), here, there);
    moved = true;
    await Promise.all(work);
    await until(async () => ![undefined, channel].includes((await channels(here))[0]), 'there is another channel');
    await here.waiting(awaited, 1);
    await here.say('RLOCK.RELEASE', awaited, 'raw');
    await (await wait).release();
    assert.deepEqual([hold.lost, rest.lost, lease.lost], [null, null, null]);
    for (const one of [hold, lease]) {
      await here.say('RLOCK.FORCE', one.key);
      assert.equal(await lost(one), 'forced');
    }
    assert.equal(rest.lost, null);
    await rest.release();
  });
}

for (const how of ['takes over', 'takes over from a killed master']) {
  forEach(`a replica ${how}`, async (t, open) => {
    const { masters, replicas } = await Cluster.start(t, true);
    const [old, heir] = [masters[0], replicas[0]];
    const locks = open(masters[1].port, { cluster: true, timeout: 30_000 });
    const [key, awaited, plain] = ['l', 'w', 'p'].map((kind) => keyAt(0, kind));
    const hold = await locks.acquire(key, { lease: 60_000 });
    const lease = await locks.acquire(plain, { watchdog: false, lease: 60_000 });
    const others = [];
    for (const n of [1, 2]) others.push(await locks.acquire(keyAt(n, 'k'), { lease: 60_000 }));
    await old.say('RLOCK.ACQUIRE', awaited, 'raw', 60_000);
    const wait = locks.acquire(awaited, { wait: 60_000 });
    await old.waiting(awaited, 1);
    assert.equal(await old.say('WAIT', 1, 10_000), 1);
    const killed = how.includes('killed');
    if (killed) await old.kill();
    else await heir.say('CLUSTER', 'FAILOVER', 'TAKEOVER');
    assert(['connection', 'demoted'].includes(await lost(hold)));
    await until(async () => (await heir.say('INFO', 'replication')).includes('role:master'), 'it is the master');
    await heir.waiting(awaited, 1);
    await heir.say('RLOCK.RELEASE', awaited, 'raw');
    await (await wait).release();
    await heir.free(key);
    if (killed) {
      assert.equal(lease.lost, null); // nobody could say what became of it
      await lease.renew(120_000);
      assert((await heir.say('PTTL', plain)) > 100_000);
      await lease.release();
    }
    await heir.free(plain);
    assert((await failure(hold.release())) instanceof LostError);
    for (const one of others) {
      assert.equal(one.lost, null);
      await one.release();
    }
    await (await locks.acquire(key, { wait: 20_000 })).release();
  });
}

forEach('a wait alone goes over to the replica that takes over', async (t, open) => {
  const { masters, replicas } = await Cluster.start(t, true);
  const [old, heir] = [masters[0], replicas[0]];
  const locks = open(masters[1].port, { cluster: true, timeout: 30_000 });
  const key = keyAt(0, 'w');
  await old.say('RLOCK.ACQUIRE', key, 'raw', 60_000);
  const wait = locks.acquire(key, { wait: 60_000 });
  await old.waiting(key, 1);
  assert.equal(await old.say('WAIT', 1, 10_000), 1);
  await heir.say('CLUSTER', 'FAILOVER', 'TAKEOVER');
  await heir.waiting(key, 1);
  await heir.say('RLOCK.RELEASE', key, 'raw');
  await (await wait).release();
});

forEach('a cluster whose node accepts connections and says nothing', async (t, open) => {
  const server = await Server.start(t, '--cluster-enabled', 'yes');
  await server.say('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
  await until(async () => (await server.say('CLUSTER', 'INFO')).includes('cluster_state:ok'), 'the cluster is there');
  server.signal('SIGSTOP');
  const locks = open(server.port, { cluster: true, timeout: 6000 });
  const began = performance.now();
  assert.equal((await failure(locks.acquire('jobs'))).name, 'ConnectionError');
  assert(performance.now() - began < 30_000);
  server.signal('SIGCONT');
  await (await locks.acquire('jobs')).release();
});

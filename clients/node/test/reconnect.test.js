// Plain holds over a new connection: asked for there, and notified of from then on.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionError, LostError } from 'rlock-client';
import { forEach } from './tools/libraries.js';
import { Proxy } from './tools/proxy.js';
import { Server, freePort } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';

/** What is asked for, and what a hold of it is called. */
const KINDS = {
  plain: ['jobs', {}],
  many: [['{jobs}:1', '{jobs}:2'], {}],
  permits: ['gpu', { limit: 4, permits: 2 }],
  read: ['book', { mode: 'read' }],
};

const take = (locks, kind, lease = 60_000) => locks.acquire(KINDS[kind][0], { ...KINDS[kind][1], watchdog: false, lease });

const renewed = async (server) => Number(/rlock_renewed:(\d+)/.exec(await server.say('INFO', 'rlock'))[1]);

/** Cuts, and waits until so many keys were renewed on the next connection. */
async function cut(proxy, server, keys) {
  const before = await renewed(server);
  proxy.close();
  await until(async () => (await renewed(server)) >= before + keys, 'they are asked for again');
}

forEach('plain holds that were forced while the connection was away', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  const holds = [];
  for (const kind of Object.keys(KINDS)) holds.push(await take(locks, kind));
  const rest = await locks.acquire('rest', { watchdog: false, lease: 60_000 });
  proxy.to = await freePort();
  proxy.close();
  for (const hold of holds) await server.say('RLOCK.FORCE', hold.keys.at(-1));
  assert.deepEqual(holds.map((hold) => hold.lost), [null, null, null, null]);
  proxy.to = server.port;
  for (const hold of holds) {
    assert.equal(await lost(hold), 'expired');
    assert.equal(await failure(hold.release()), hold.lost);
    for (const key of hold.keys) await server.free(key);
  }
  assert.equal(rest.lost, null);
  await rest.release();
});

forEach('plain holds that are forced after the reconnect', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  const holds = [];
  for (const kind of Object.keys(KINDS)) holds.push(await take(locks, kind));
  await cut(proxy, server, 5);
  for (const hold of holds) {
    await server.say('RLOCK.FORCE', hold.keys.at(-1));
    assert.equal(await lost(hold), 'forced');
    assert.equal(await failure(hold.release()), hold.lost);
    for (const key of hold.keys) await server.free(key);
  }
});

forEach('plain holds that are released after reconnects', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  const holds = [];
  for (const kind of Object.keys(KINDS)) holds.push(await take(locks, kind));
  await cut(proxy, server, 5);
  await cut(proxy, server, 5);
  for (const hold of holds) {
    await hold.release();
    for (const key of hold.keys) assert.equal((await server.info(key)).mode, 'free');
  }
});

forEach('a release and a renewal behind the question get its answer', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  const [released, renewal] = [await take(locks, 'plain'), await take(locks, 'permits')];
  proxy.close();
  await server.say('RLOCK.FORCE', 'jobs');
  await server.say('RLOCK.FORCE', 'gpu');
  const error = await failure(renewal.renew()); // waits until there is a connection
  assert.deepEqual([error.name, error.reason], ['LostError', 'expired']);
  assert(renewal.signal.aborted);
  assert((await failure(released.release())) instanceof LostError);
});

forEach('a loss that is notified while the release is under way', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  const hold = await take(locks, 'plain');
  await server.say('RLOCK.FORCE', 'jobs');
  assert((await failure(hold.release())) instanceof LostError);
});

forEach('a reconnect moves no deadline, and undoes no renewal', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  const longer = await take(locks, 'permits', 20_000);
  proxy.cut('RLOCK.RENEW');
  await longer.renew(60_000);
  assert((await server.say('PTTL', 'gpu')) > 50_000);
  const began = performance.now();
  const hold = await take(locks, 'plain', 16_000);
  const taken = performance.now();
  await sleep(8000); // so that a lease that began anew would be seen
  const away = performance.now();
  await cut(proxy, server, 2);
  const asked = performance.now();
  const left = await server.say('PTTL', 'jobs');
  const [least, most] = [began + 15_900 - performance.now(), taken + 22_000 - asked];
  assert(left > least && left < most, `${left} ms are left, and not ${least} to ${most}`);
  await lost(hold);
  const over = performance.now();
  assert(over > began + 15_900 && over < away + 16_000, `lost after ${over - began} ms`);
  await server.free('jobs');
  await longer.release();
});

for (const kept of [true, false]) {
  forEach(`a server that starts again ${kept ? 'with' : 'without'} its data`, async (t, open) => {
    const server = await Server.start(t, ...(kept ? ['--appendonly', 'yes', '--appendfsync', 'always'] : []));
    const locks = open(server.port);
    const holds = [await take(locks, 'plain'), await take(locks, 'many')];
    await server.restart();
    if (kept) await until(async () => (await renewed(server)) >= 3, 'they are asked for again');
    for (const hold of holds) {
      if (kept) await hold.release();
      else assert.equal(await lost(hold), 'expired');
      for (const key of hold.keys) assert.equal((await server.info(key)).mode, 'free');
    }
  });
}

forEach('a server that grants nothing yet is asked again', async (t, open) => {
  const server = await Server.start(t, '--rlock.grant-after', '600000');
  const [locks, impatient] = [open(server.port, { timeout: 20_000 }), open(server.port, { timeout: 300 })];
  assert((await failure(impatient.acquire('jobs'))) instanceof ConnectionError);
  assert((await failure(impatient.acquire('jobs', { wait: 100 }))) instanceof ConnectionError);
  const later = [locks.acquire('one'), locks.acquire('two', { wait: 20_000 })];
  await sleep(700);
  await server.say('CONFIG', 'SET', 'rlock.grant-after', 0);
  for (const hold of await Promise.all(later)) await hold.release();
});

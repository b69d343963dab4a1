// Replies that are lost, and grants that cross what the program does.
import assert from 'node:assert/strict';
import { forEach } from './tools/libraries.js';
import { Proxy } from './tools/proxy.js';
import { Server } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';

forEach('the reply to ACQUIRE is lost: one hold, of the program', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  await (await locks.acquire('warm')).release();
  for (const options of [{}, { wait: 20_000 }, { watchdog: false }, { wait: 20_000, watchdog: false }]) {
    proxy.cut('RLOCK.ACQUIRE');
    const hold = await locks.acquire('jobs', options);
    const [holder] = (await server.info('jobs')).holders;
    assert.deepEqual([holder.holds, holder.token, holder.owner], [1, hold.token, hold.owner]);
    await hold.release();
    await server.free('jobs');
  }
});

async function acquires(server) {
  return Number(/cmdstat_rlock.acquire:calls=(\d+)/i.exec(await server.say('INFO', 'commandstats'))[1]);
}

forEach('the reply to a wait is lost: it keeps its place', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port), open(server.port)];
  const first = await others.acquire('jobs');
  await (await locks.acquire('warm')).release();
  proxy.cut('RLOCK.ACQUIRE');
  const before = await acquires(server);
  const wait = locks.acquire('jobs', { wait: 30_000 });
  // A place whose connection is away is kept, but makes nobody wait.
  await until(async () => (await acquires(server)) === before + 2, 'it is retried');
  await server.waiting('jobs', 1);
  const behind = others.acquire('jobs', { wait: 30_000 });
  await server.waiting('jobs', 2);
  await first.release();
  const hold = await wait;
  await hold.release();
  assert((await behind).token > hold.token);
});

forEach('the reply to RELEASE is lost: released all the same', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  for (const options of [{}, { watchdog: false, lease: 60_000 }]) {
    const hold = await locks.acquire('jobs', options);
    proxy.cut('RLOCK.RELEASE');
    await hold.release();
    await server.free('jobs');
  }
});

forEach('RENEW is cut: retried for a plain hold, lost for one with watchdog', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  const plain = await locks.acquire('p', { watchdog: false, lease: 10_000 });
  proxy.cut('RLOCK.RENEW');
  await plain.renew(60_000);
  assert((await server.say('PTTL', 'p')) > 20_000);
  const hold = await locks.acquire('w');
  proxy.cut('RLOCK.RENEW');
  assert.equal(await failure(hold.renew()), hold.lost);
  assert.equal(hold.lost.reason, 'connection');
});

forEach('a reply that is dropped is noticed by the next', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  await (await locks.acquire('warm')).release();
  proxy.drop('RLOCK.ACQUIRE');
  const hold = await locks.acquire('jobs', { lease: 4000, wait: 20_000 });
  assert.equal((await server.info('jobs')).holders[0].token, hold.token);
  await hold.release();
});

forEach('a grant that crosses the cancel is released', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  for (const watchdog of [true, false]) {
    await server.say('RLOCK.ACQUIRE', 'jobs', 'other', 60_000);
    const abort = new AbortController();
    const wait = failure(locks.acquire('jobs', { wait: Infinity, watchdog, signal: abort.signal }));
    await server.waiting('jobs', 1);
    proxy.hold();
    await server.say('RLOCK.RELEASE', 'jobs', 'other');
    assert.equal((await server.info('jobs')).mode, 'exclusive'); // granted, and nobody knows
    abort.abort();
    assert.equal((await wait).name, 'AbortError');
    await server.free('jobs');
    proxy.let();
  }
  await (await locks.acquire('jobs')).release();
});

forEach('a cancel while the connection is gone reaches the server', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  await server.say('RLOCK.ACQUIRE', 'jobs', 'other', 60_000);
  const abort = new AbortController();
  const wait = failure(locks.acquire('jobs', { wait: Infinity, watchdog: false, signal: abort.signal }));
  await server.waiting('jobs', 1);
  proxy.cut('RLOCK.ACQUIRE'); // the place that is asked for again is not answered
  proxy.close();
  abort.abort();
  await wait;
  await server.waiting('jobs', 0);
  await server.say('RLOCK.RELEASE', 'jobs', 'other');
  await server.free('jobs');
});

forEach('cut while a hundred holds, waits and releases are under way', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  const names = [...Array(100).keys()];
  const held = await Promise.all(names.map((n) => locks.acquire(`held:${n}`, { lease: 60_000 })));
  const given = await Promise.all(names.map((n) => locks.acquire(`given:${n}`, { watchdog: false, lease: 60_000 })));
  for (const n of names) await server.say('RLOCK.ACQUIRE', `wait:${n}`, 'other', 60_000);
  const waits = names.map((n) => locks.acquire(`wait:${n}`, { wait: 60_000 }));
  await server.waiting('wait:99', 1);
  const releases = given.map((hold) => hold.release());
  proxy.close();
  await Promise.all(releases);
  for (const hold of held) assert.equal(await lost(hold), 'connection');
  for (const n of names) await server.say('RLOCK.RELEASE', `wait:${n}`, 'other');
  const granted = await Promise.all(waits);
  assert.equal(new Set(granted.map((hold) => hold.token)).size, 100);
  for (const n of names) await server.free(`given:${n}`);
  for (const n of names) await server.free(`held:${n}`);
});

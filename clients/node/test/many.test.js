// Many waits and holds on one connection.
import assert from 'node:assert/strict';
import { forEach } from './tools/libraries.js';
import { Server } from './tools/server.js';
import { until } from './tools/until.js';

const connections = async (server) => Number(/connected_clients:(\d+)/.exec(await server.say('INFO', 'clients'))[1]);

forEach('a thousand waits for one lock: one at a time, each once, one connection', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const first = await locks.acquire('jobs');
  const before = await connections(server);
  let inside = 0;
  let served = 0;
  const waits = [...Array(1000)].map(() =>
    locks.using('jobs', { wait: 100_000 }, async () => {
      inside += 1;
      assert.equal(inside, 1);
      await null;
      inside -= 1;
      served += 1;
    }),
  );
  await server.waiting('jobs', 1000);
  assert.equal(await connections(server), before);
  await first.release();
  await Promise.all(waits);
  assert.equal(served, 1000);
  assert.equal((await server.info('jobs')).mode, 'free');
});

forEach('10,000 holds and 10,000 waits, cut, and asked for again', async (t, open) => {
  const server = await Server.start(t);
  const patience = { timeout: 300_000 }; // so many at a time, on a busy machine
  const [locks, others] = [open(server.port, patience), open(server.port, patience)];
  const names = [...Array(10_000).keys()];
  const held = await Promise.all(names.map((n) => others.acquire(`k:${n}`, { lease: 60_000 })));
  const mine = await Promise.all(names.map((n) => locks.acquire(`m:${n}`, { lease: 60_000 })));
  const waits = names.map((n) => locks.acquire(`k:${n}`, { wait: 600_000, lease: 60_000 }));
  await server.waiting('k:9999', 1);
  const { watchdog } = (await server.info('m:0')).holders[0];
  await server.say('CLIENT', 'KILL', 'ID', watchdog);
  await until(() => mine.every((hold) => hold.lost), 'all are lost');
  const again = async () => (await server.say('RLOCK.WAITERS', 'k:9999'))[0]?.['client-id'] > watchdog;
  await until(again, 'the last wait is asked for again', 60_000);
  await Promise.all(held.map((hold) => hold.release()));
  const granted = await Promise.all(waits);
  assert.equal(granted.filter((hold) => hold.lost).length, 0);
  await Promise.all(granted.map((hold) => hold.release()));
  await until(async () => (await server.say('DBSIZE')) === 0, 'all are free');
});

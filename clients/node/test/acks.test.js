// A hold that replicas must have.
import assert from 'node:assert/strict';
import { RefusedError } from 'rlock-client';
import { forEach } from './tools/libraries.js';
import { Server } from './tools/server.js';
import { failure, until } from './tools/until.js';

forEach('acks: with a replica, with a frozen one, at once and after a wait', async (t, open) => {
  const server = await Server.start(t);
  const replica = await Server.start(t, '--replicaof', '127.0.0.1', String(server.port));
  await until(async () => /state=online/.test(await server.say('INFO', 'replication')), 'the replica is there');
  const locks = open(server.port);
  const many = await Promise.all([...Array(50).keys()].map((n) => locks.acquire(`k:${n}`, { acks: 1, acksTimeout: 10_000 })));
  assert.equal(await replica.say('EXISTS', 'k:49'), 1);
  await Promise.all(many.map((hold) => hold.release()));

  replica.signal('SIGSTOP');
  for (const watchdog of [true, false]) {
    const error = await failure(locks.acquire('jobs', { acks: 1, acksTimeout: 200, watchdog }));
    assert(error instanceof RefusedError);
    assert.equal(error.code, 'NOREPLICAS');
    await server.free('jobs');
  }
  const first = await locks.acquire('jobs');
  const wait = failure(locks.acquire('jobs', { wait: 10_000, acks: 1, acksTimeout: 200 }));
  await server.waiting('jobs', 1);
  await first.release();
  assert.equal((await wait).code, 'NOREPLICAS');
  await server.free('jobs');

  replica.signal('SIGCONT');
  const hold = await locks.acquire('jobs', { acks: 1, acksTimeout: 20_000, wait: 20_000 });
  assert.equal(hold.lost, null);
});

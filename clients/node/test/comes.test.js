// A module that is loaded while locks are held by the library.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { AGAIN } from '../src/backend.js';
import { forEach } from './tools/libraries.js';
import { MODULE, Server } from './tools/server.js';
import { lost, until } from './tools/until.js';

AGAIN.every = 200;

forEach('a hold of several keys goes on, and its loss is notified', async (t, open) => {
  const server = await Server.plain(t, '--enable-module-command', 'yes');
  const locks = open(server.port);
  const hold = await locks.acquire(['a', 'b'], { lease: 6000 });
  await server.say('MODULE', 'LOAD', MODULE);
  await until(() => locks.backend === 'module', 'the module is found');
  await sleep(8000); // longer than its lease
  assert.equal(hold.lost, null);
  for (const key of hold.keys) assert.equal((await server.info(key)).holders[0].owner, hold.owner);
  await server.say('RLOCK.FORCE', 'b');
  assert.equal(await lost(hold), 'forced');
  await server.free('a');
});

forEach('who has asked whether a hold is wanted learns it from then on', async (t, open) => {
  const server = await Server.plain(t, '--enable-module-command', 'yes');
  const [locks, others] = [open(server.port), open(server.port)];
  const hold = await locks.acquire('jobs', { lease: 10_000 });
  const wait = hold.untilWanted();
  const other = others.acquire('jobs', { wait: Infinity });
  await server.say('MODULE', 'LOAD', MODULE);
  assert.equal(await wait, true);
  await hold.release();
  await (await other).release();
});

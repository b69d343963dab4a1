// Holds that are lost, and how the program is notified.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionError, LostError } from 'rlock-client';
import { forEach } from './tools/libraries.js';
import { Server } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';

forEach('FORCE and DEL of one hold are notified for that one', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const holds = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key)));
  await server.say('RLOCK.FORCE', 'a');
  assert.equal(await lost(holds[0]), 'forced');
  await server.say('DEL', 'b');
  assert.equal(await lost(holds[1]), 'deleted');
  assert.equal(holds[2].lost, null);
  assert.equal((await server.info('c')).holders[0].token, holds[2].token);
  assert.equal(await failure(holds[0].release()), holds[0].lost);
});

forEach('using: the signal is aborted, and Lost comes out with what the body said', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const stopped = failure(locks.using('a', (signal) => sleep(60_000, undefined, { signal })));
  const deaf = failure(locks.using('b', async (signal) => {
    await until(() => signal.aborted, 'the loss');
    return 'done all the same';
  }));
  await until(async () => (await server.say('EXISTS', 'a', 'b')) === 2, 'both are held');
  await server.say('RLOCK.FORCE', 'a');
  await server.say('RLOCK.FORCE', 'b');
  const error = await stopped;
  assert(error instanceof LostError);
  assert.deepEqual([error.reason, error.keys, error.cause.name], ['forced', ['a'], 'AbortError']);
  assert.equal((await deaf).reason, 'forced');
});

forEach('a program that keeps the event loop busy beyond a lease sees that it is over', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const holds = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key, { watchdog: false, lease: 3000 })));
  const bounded = await locks.acquire('d', { max: 3000 });
  const end = performance.now() + 3100;
  while (performance.now() < end); // nothing else runs meanwhile
  assert.equal(holds[0].lost?.reason, 'lease');
  assert(holds[1].signal.aborted);
  assert.throws(() => holds[2].again(), LostError);
  assert.equal(bounded.lost?.reason, 'max');
  for (const hold of [...holds, bounded]) assert((await failure(hold.release())) instanceof LostError);
});

forEach('of several keys one is lost: the others end with the release', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const hold = await locks.acquire(['x', 'y', 'z']);
  await server.say('RLOCK.FORCE', 'y');
  assert.equal(await lost(hold), 'forced');
  await failure(hold.release());
  await server.free('x');
  await server.free('z');
});

forEach('the connection is killed: watchdog holds are lost, plain ones stand, waits go on', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const hold = await locks.acquire('a');
  const plain = await locks.acquire('p', { watchdog: false, lease: 60_000 });
  await server.say('RLOCK.ACQUIRE', 'b', 'other', 60_000);
  const wait = locks.acquire('b', { wait: 30_000 });
  await server.waiting('b', 1);
  const id = (await server.info('a')).holders[0].watchdog;
  await server.say('CLIENT', 'KILL', 'ID', id);
  assert.equal(await lost(hold), 'connection');
  await server.free('a');
  const other = async () => {
    const [first] = await server.say('RLOCK.WAITERS', 'b');
    return first && first['client-id'] !== id;
  };
  await until(other, 'the wait is asked for again');
  await server.say('RLOCK.RELEASE', 'b', 'other');
  assert((await wait).token > hold.token);
  assert.equal(plain.lost, null);
  await plain.renew();
  await plain.release();
  assert.equal((await server.info('p')).mode, 'free');
});

forEach('the server is killed and starts again', async (t, open) => {
  const server = await Server.start(t, '--appendonly', 'yes', '--appendfsync', 'always');
  const locks = open(server.port, { timeout: 20_000 });
  const hold = await locks.acquire('a', { lease: 30_000 });
  const plain = await locks.acquire('p', { watchdog: false, lease: 60_000 });
  const gone = await locks.acquire('q', { watchdog: false, lease: 60_000 });
  await server.say('RLOCK.ACQUIRE', 'b', 'other', 60_000);
  const wait = locks.acquire('b', { wait: Infinity });
  await server.waiting('b', 1);
  await server.kill();
  assert.equal(await lost(hold), 'connection');
  await gone.release(); // there is no connection; the next one will
  await server.run();
  await server.waiting('b', 1);
  await server.free('a'); // released first of all on the new connection
  await server.free('q');
  assert.equal((await server.info('p')).mode, 'exclusive');
  await plain.release();
  await server.free('p'); // the server knows no token of it any more
  await server.say('RLOCK.RELEASE', 'b', 'other');
  await (await wait).release();
  const next = await locks.acquire('a');
  assert(next.token > hold.token);
});

forEach('a frozen server: lost within one lease, and waits end in time', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port, { timeout: 3000 });
  const hold = await locks.acquire('a', { lease: 5000 });
  await server.say('RLOCK.ACQUIRE', 'b', 'other', 60_000);
  const wait = failure(locks.acquire('b', { wait: 8000 }));
  await server.waiting('b', 1);
  server.signal('SIGSTOP');
  const began = performance.now();
  assert.equal(await lost(hold), 'connection');
  assert(performance.now() - began < 20_000, `it took ${performance.now() - began} ms`);
  assert((await failure(locks.acquire('c'))) instanceof ConnectionError);
  assert((await wait) instanceof ConnectionError);
  server.signal('SIGCONT');
  await server.waiting('b', 0);
  await server.free('a');
  await (await locks.acquire('a', { wait: 20_000 })).release();
});

forEach('no server at all: an error in time, and the next request finds it', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port, { timeout: 2000 });
  await server.kill();
  const error = await failure(locks.acquire('a'));
  assert(error instanceof ConnectionError);
  assert.match(error.message, /ECONNREFUSED/);
  await server.run();
  await (await locks.acquire('a', { wait: 20_000 })).release();
});

forEach('a replica is no master: asked again until it is one', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port, { timeout: 20_000 });
  const hold = await locks.acquire('a');
  await server.say('REPLICAOF', '127.0.0.1', 1);
  assert(['demoted', 'connection'].includes(await lost(hold)));
  const wait = locks.acquire('b');
  const asked = async () => /cmdstat_rlock.acquire.*rejected_calls=[1-9]/i.test(await server.say('INFO', 'commandstats'));
  await until(asked, 'the replica was asked');
  await server.say('REPLICAOF', 'NO', 'ONE');
  await (await wait).release();
});

forEach('what the user may not do is refused at once', async (t, open) => {
  const server = await Server.start(t);
  await server.say('ACL', 'SETUSER', 'default', 'resetchannels');
  const error = await failure(open(server.port).acquire('a', { wait: Infinity }));
  assert.deepEqual([error.name, error.code], ['RefusedError', 'NOPERM']);
});

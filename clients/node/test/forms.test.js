// What a program does with locks when nothing breaks.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { DeadlockError, HeldByJobError, LostError, NotAcquiredError, RefusedError } from 'rlock-client';
import { forEach } from './tools/libraries.js';
import { Server } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';

forEach('acquire and release', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const hold = await locks.acquire('jobs');
  const info = await server.info('jobs');
  assert.equal(info.holders[0].token, hold.token);
  assert.equal(info.holders[0].owner, hold.owner);
  assert(info.holders[0].watchdog > 0);
  assert.deepEqual([hold.key, hold.keys, hold.lost], ['jobs', ['jobs'], null]);
  const error = await failure(locks.acquire('jobs'));
  assert(error instanceof NotAcquiredError);
  await hold.release();
  await hold.release();
  assert.equal((await server.info('jobs')).mode, 'free');
  assert.equal(hold.signal.aborted, false);
  const next = await locks.acquire('jobs');
  assert(next.token > hold.token);
});

forEach('waits are served in order', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const first = await locks.acquire('jobs');
  const served = [];
  const waits = [1, 2, 3].map(async (n) => {
    await until(async () => (await server.info('jobs')).waiters === n - 1, 'its turn');
    await locks.using('jobs', { wait: n === 2 ? Infinity : 30_000 }, () => served.push(n));
  });
  await server.waiting('jobs', 3);
  await first.release();
  await Promise.all(waits);
  assert.deepEqual(served, [1, 2, 3]);
});

forEach('a wait ends in time', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  await server.say('RLOCK.ACQUIRE', 'jobs', 'other', 60_000);
  const began = performance.now();
  const error = await failure(locks.acquire('jobs', { wait: 300 }));
  assert(error instanceof NotAcquiredError);
  assert(performance.now() - began >= 299);
  assert.equal((await server.info('jobs')).waiters, 0);
});

forEach('a cancelled wait is over in the server too', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  await server.say('RLOCK.ACQUIRE', 'jobs', 'other', 60_000);
  const abort = new AbortController();
  const wait = failure(locks.acquire('jobs', { wait: Infinity, signal: abort.signal }));
  await server.waiting('jobs', 1);
  const reason = new Error('enough');
  abort.abort(reason);
  assert.equal(await wait, reason);
  await server.waiting('jobs', 0);
  assert.equal(await failure(locks.acquire('free', { signal: abort.signal })), reason);
  assert.equal((await server.info('free')).mode, 'free');
});

forEach('using: the result, the error of the body, the lock that is not had', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  assert.equal(await locks.using('jobs', () => 'done'), 'done');
  const own = new Error('own');
  assert.equal(await failure(locks.using('jobs', {}, () => Promise.reject(own))), own);
  assert.equal((await server.info('jobs')).mode, 'free');
  await locks.using('jobs', async (signal, hold) => {
    hold.again();
    assert.equal(hold.signal, signal);
    assert((await failure(locks.using('jobs', assert.fail))) instanceof NotAcquiredError);
  });
  assert.equal((await server.info('jobs')).mode, 'free');
});

forEach('again: the last release releases', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const hold = await locks.acquire('jobs');
  assert.equal(hold.again(), hold);
  await hold.release();
  assert.equal((await server.info('jobs')).mode, 'exclusive');
  await hold[Symbol.asyncDispose]();
  assert.equal((await server.info('jobs')).mode, 'free');
  assert.throws(() => hold.again(), LostError);
});

forEach('a job has one owner, and gets an error for a key that it has already', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const job = locks.job();
  const a = await job.acquire('a');
  const b = await job.acquire('b');
  assert.equal(a.owner, b.owner);
  const error = await failure(job.acquire('a', { wait: 5000 }));
  assert(error instanceof HeldByJobError);
  await a.release();
  await job.using('a', (_, hold) => assert(hold.token > a.token));
  await server.say('RLOCK.ACQUIRE', 'c', 'other', 60_000);
  const abort = new AbortController();
  const wait = failure(job.acquire('c', { wait: 10_000, signal: abort.signal }));
  await server.waiting('c', 1);
  assert((await failure(job.acquire('c'))) instanceof HeldByJobError);
  abort.abort();
  await wait;
  // Given up and asked for again at once: what cancels the first does not hit the second.
  const again = job.acquire('c', { wait: 30_000 });
  await server.waiting('c', 1);
  await server.say('RLOCK.RELEASE', 'c', 'other');
  const c = await again;
  assert.equal(c.lost, null);
  assert.equal((await server.info('c')).holders[0].token, c.token);
});

forEach('a deadlock between two jobs is an error', async (t, open) => {
  const server = await Server.start(t);
  const [ann, bob] = [open(server.port).job(), open(server.port).job()];
  await ann.acquire('a');
  await bob.acquire('b');
  const waits = ann.acquire('b', { wait: Infinity });
  await server.waiting('b', 1);
  const error = await failure(bob.acquire('a', { wait: Infinity }));
  assert(error instanceof DeadlockError);
  assert.match(error.message, /^DEADLOCK .*waits for a/);
  await server.say('RLOCK.FORCE', 'b');
  await waits;
});

forEach('read, write, permits, many keys', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const readers = await Promise.all([1, 2].map(() => locks.acquire('doc', { mode: 'read' })));
  assert((await failure(locks.acquire('doc', { mode: 'write' }))) instanceof NotAcquiredError);
  for (const reader of readers) await reader.release();
  await locks.using('doc', { mode: 'write' }, async () => {
    assert.equal((await server.info('doc')).mode, 'write');
  });

  const three = await locks.acquire('gpu', { limit: 4, permits: 3 });
  assert((await failure(locks.acquire('gpu', { limit: 4, permits: 2 }))) instanceof NotAcquiredError);
  const other = await failure(locks.acquire('gpu', { limit: 5 }));
  assert(other instanceof RefusedError);
  assert.equal(other.code, 'WRONGLIMIT');
  await three.renew(20_000);
  await three.release();
  assert.equal((await server.info('gpu')).mode, 'free');

  const both = await locks.acquire(['x', 'y']);
  assert((await failure(locks.acquire('y'))) instanceof NotAcquiredError);
  await both.renew();
  await both.release();
  assert.equal((await server.info('y')).mode, 'free');
});

forEach('a plain lease ends, unless it is renewed', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const hold = await locks.acquire('jobs', { watchdog: false, lease: 20_000 });
  await hold.renew(60_000);
  assert((await server.say('PTTL', 'jobs')) > 30_000);
  await hold.renew(4000);
  const { signal } = hold;
  assert(['lease', 'expired'].includes(await lost(hold)));
  assert(signal.aborted && signal.reason === hold.lost);
  assert.equal(await failure(hold.renew()), hold.lost);
  assert.equal(await failure(hold.release()), hold.lost);
  await hold.release();
});

forEach('max bounds a hold', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const error = await failure(
    locks.using('jobs', { max: 200 }, (signal) => sleep(60_000, undefined, { signal })),
  );
  assert(error instanceof LostError);
  assert.equal(error.reason, 'max');
  await server.free('jobs');
});

forEach('close releases, ends the waits, and refuses what comes later', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const hold = await locks.acquire('a', { watchdog: false, lease: 60_000 });
  await server.say('RLOCK.ACQUIRE', 'b', 'other', 60_000);
  const wait = failure(locks.acquire('b', { wait: Infinity }));
  await server.waiting('b', 1);
  let begun, finish;
  const scope = failure(
    locks.using('scope', (signal) => {
      begun = true;
      signal.addEventListener('abort', () => (finish = server.info('scope')));
      return until(() => finish, 'it has ended').then(({ mode }) => assert.equal(mode, 'free'));
    }),
  );
  await until(() => begun, 'the body runs');
  await locks.close();
  assert.equal((await scope).reason, 'closed');
  assert.equal((await wait).name, 'ConnectionError');
  assert.equal(hold.lost.reason, 'closed');
  assert.equal((await server.info('a')).mode, 'free');
  assert.equal((await server.info('b')).waiters, 0);
  assert.equal((await failure(locks.acquire('a'))).name, 'ConnectionError');
  assert.equal((await failure(hold.release())).reason, 'closed');
});

forEach('bad arguments are errors before anything is sent', async (t, open) => {
  const locks = open(1); // nobody is there
  const bad = [
    [[], {}], [['x', 'x'], {}], [7, {}], ['x', { lease: 0 }], ['x', { lease: '5' }], ['x', { wait: -1 }],
    ['x', { wait: NaN }], ['x', { mode: 'shared' }], ['x', { permits: 2 }], ['x', { limit: 2, permits: 3 }],
    ['x', { limit: 1.5 }], [['x', 'y'], { mode: 'read' }], ['x', { watchdog: false, max: 10 }], ['x', { signal: 1 }],
    ['x', null], ['x', { acks: 0 }],
  ];
  for (const [keys, options] of bad) {
    const error = await failure(locks.acquire(keys, options));
    assert(error instanceof TypeError || error instanceof RangeError, JSON.stringify([keys, options]));
  }
  assert((await failure(locks.using('x', {}))) instanceof TypeError);
});

forEach('a hold goes into a log', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const hold = await locks.acquire('jobs');
  assert.deepEqual(JSON.parse(JSON.stringify({ hold })), { hold: { keys: ['jobs'], owner: hold.owner, token: hold.token } });
  await hold.release();
});

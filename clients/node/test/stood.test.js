// A program that blocks its event loop, and times that are longer than any timer or shorter than any answer.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { forEach } from './tools/libraries.js';
import { Server } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';

const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

forEach('what was answered while the event loop was blocked is read before it counts as not answered', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port, { timeout: 4000 });
  const connecting = locks.acquire('first');
  await turn();
  block(4500);
  const first = await connecting;

  const asked = locks.acquire('asked');
  block(4500);
  await (await asked).release();

  await server.say('RLOCK.ACQUIRE', 'taken', 'raw', 60_000);
  const waiting = locks.acquire('taken', { wait: 5000 });
  await server.waiting('taken', 1);
  const freed = server.say('RLOCK.RELEASE', 'taken', 'raw');
  await turn();
  block(6000);
  await freed;
  await (await waiting).release();

  await server.say('RLOCK.ACQUIRE', 'taken', 'raw', 60_000);
  const inVain = locks.acquire('taken', { wait: 5000 });
  await server.waiting('taken', 1);
  block(6000);
  assert.equal((await failure(inVain)).name, 'NotAcquiredError');

  const renewed = first.renew(20_000);
  block(4500);
  await renewed;
  await first.release();
});

forEach('a reply that comes while the event loop is blocked a second time is read too', async (t, open) => {
  const server = await Server.start(t);
  const hold = await open(server.port).acquire('a', { lease: 6000 });
  const pings = async () => Number(/cmdstat_ping:calls=(\d+)/.exec(await server.say('INFO', 'commandstats'))?.[1] ?? 0);
  await until(async () => (await pings()) > 0, 'a PING is answered');
  block(3800);
  // The next PING is sent now, and answered while the loop is blocked, until the last proof is 6 s old.
  server.signal('SIGSTOP');
  await sleep(30);
  spawn('sh', ['-c', `sleep 1; kill -CONT ${server.child.pid}`]);
  block(2200);
  await sleep(200);
  assert.equal(hold.lost, null);
  await hold.release();
});

forEach('times that are longer than any timer', async (t, open) => {
  const warnings = [];
  const warned = (warning) => warnings.push(String(warning));
  process.on('warning', warned);
  t.after(() => process.off('warning', warned));
  const server = await Server.start(t);
  for (const long of [2 ** 31, 2 ** 33, Number.MAX_SAFE_INTEGER]) {
    const locks = open(server.port, { timeout: long });
    const hold = await locks.acquire('jobs', { lease: long, max: long });
    const plain = await locks.acquire('plain', { lease: long, watchdog: false });
    const wait = locks.acquire('jobs', { wait: long });
    await server.waiting('jobs', 1);
    const before = Number(/total_commands_processed:(\d+)/.exec(await server.say('INFO', 'stats'))[1]);
    await sleep(500);
    const after = Number(/total_commands_processed:(\d+)/.exec(await server.say('INFO', 'stats'))[1]);
    assert(after - before < 50, `${after - before} commands in 500 ms`);
    await plain.renew(long);
    assert.deepEqual([hold.lost, plain.lost], [null, null]);
    await hold.release();
    await (await wait).release();
    await locks.close();
    await server.free('plain');
  }
  await turn();
  assert.deepEqual(warnings, []);
});

forEach('a lease that is shorter than an answer takes is no end of the others', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const short = async (hold) => {
    // Such a hold may be lost before it is given.
    for (let n = 0; n < 20; n++) {
      const had = (hold) => hold.release();
      await locks.acquire('short', { lease: 1, watchdog: n % 2 === 0 }).then(had).catch((error) => assert.equal(error.name, 'LostError'));
    }
    await hold.renew(1).catch((error) => assert.equal(error, hold.lost));
    await sleep(300);
  };
  // A busy machine may not answer within 100 ms, and then the connection is lost; but it is not so slow each time.
  let hold;
  await until(async () => {
    hold = await locks.acquire('jobs', { wait: 20_000 });
    await short(hold);
    if (hold.lost) assert.equal(hold.lost.reason, 'connection');
    return !hold.lost;
  }, 'it stands', 60_000);
  await server.say('RLOCK.FORCE', 'jobs');
  assert.match(await lost(hold), /forced|connection/);
});

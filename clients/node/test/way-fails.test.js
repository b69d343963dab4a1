// A hold gives way in vain, or may not.
import assert from 'node:assert/strict';
import { RlockError } from 'rlock-client';
import { forEach } from './tools/libraries.js';
import { Proxy } from './tools/proxy.js';
import { Server } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';
import { AT_ONCE, begin, holders, isOver, isWanted, said, tokenAt, waiter } from './tools/way.js';

forEach('what cannot give way is refused, before anything is sent', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port), open(server.port)];
  const many = await locks.acquire(['a', 'b']);
  const hold = await locks.acquire('jobs');
  const again = hold.again();
  const { wait } = await waiter(server, others);
  await isWanted(hold);
  const from = proxy.pieces.length;
  for (const one of [many, hold, again]) assert.equal((await failure(one.giveWay(AT_ONCE))).constructor, RlockError);
  for (const bad of [null, 7, { lease: 1 }, { wait: '1' }, { wait: -1 }, { least: -1 }, { least: NaN }, { signal: 1 }]) {
    assert.match((await failure(hold.giveWay(bad))).name, /TypeError|RangeError/);
  }
  const reason = new Error('enough');
  assert.equal(await failure(hold.giveWay({ ...AT_ONCE, signal: AbortSignal.abort(reason) })), reason);
  assert.deepEqual([many.lost, hold.lost], [null, null]);
  const job = locks.job();
  const reads = await job.acquire('both', { mode: 'read' });
  assert.equal((await failure(job.acquire('both', { mode: 'write' }))).name, 'HeldByJobError'); // so none is beside another
  assert.deepEqual(said(proxy, from), ['RLOCK.ACQUIRE']);
  await again.release();
  const gives = hold.giveWay(AT_ONCE);
  await (await wait).release();
  assert.equal(await gives, true);
  await Promise.all([many, hold, reads].map((one) => one.release()));
  assert.equal((await failure(hold.giveWay())).reason, 'released');
  const gone = await locks.acquire('gone');
  await server.say('RLOCK.FORCE', 'gone');
  await lost(gone);
  assert.equal(await failure(gone.giveWay()), gone.lost);
});

forEach('its time is over, or it is cancelled', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const reason = new Error('enough');
  for (const how of ['time', 'signal']) {
    const abort = new AbortController();
    const hold = await locks.acquire('jobs');
    const seen = [];
    hold.signal.addEventListener('abort', () => seen.push(hold.lost.reason));
    const { wait } = await waiter(server, others);
    await isWanted(hold);
    const gives = hold.giveWay(how === 'time' ? { ...AT_ONCE, wait: 300 } : { ...AT_ONCE, signal: abort.signal });
    gives.catch(() => {});
    const between = await wait;
    abort.abort(reason);
    const error = await failure(gives);
    if (how === 'time') assert.equal(error.name, 'NotAcquiredError');
    else assert.equal(error, reason);
    await until(() => seen.length, 'it is notified');
    assert.deepEqual(seen, ['released']);
    await isOver(server, hold, between);
  }
});

forEach('the end of its scope throws nothing more', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  for (const caught of [true, false]) {
    let error, between;
    const run = locks.using('jobs', async (signal, hold) => {
      const { wait } = await waiter(server, others);
      await isWanted(hold);
      const gives = hold.giveWay({ ...AT_ONCE, wait: 300 });
      error = await failure(gives);
      between = await wait;
      if (!caught) throw error;
      return 'done';
    });
    if (caught) assert.equal(await run, 'done');
    else assert.equal(await failure(run), error);
    assert.equal(error.name, 'NotAcquiredError');
    assert.equal(await tokenAt(server), between.token);
    await between.release();
    await server.free('jobs');
  }
});

forEach('it would wait for ever', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const [job, against] = [locks.job(), others.job()];
  const [other, hold] = [await job.acquire('other'), await job.acquire('jobs')];
  const { wait } = await waiter(server, against);
  const more = against.acquire('other', { wait: Infinity });
  await server.waiting('other', 1);
  await isWanted(hold);
  assert.equal((await failure(hold.giveWay(AT_ONCE))).name, 'DeadlockError');
  const between = await wait;
  assert.equal(await tokenAt(server, 'other'), other.token);
  await other.release();
  await (await more).release();
  await isOver(server, hold, between);
  await (await job.acquire('jobs', { wait: Infinity })).release();
});

forEach('who may not acquire, or not release, any more', async (t, open) => {
  const server = await Server.start(t);
  await server.say('ACL', 'SETUSER', 'ann', 'on', '>secret', '~*', '&*', '+@all');
  const ann = { username: 'ann', password: 'secret' };
  const locks = open(server.port, { client: { 'node-redis': ann, ioredis: ann } });
  const others = open(server.port);
  for (const verb of ['acquire', 'release']) {
    for (const by of [locks, locks.job()]) {
      const hold = await by.acquire('jobs');
      const { wait } = await waiter(server, others);
      await isWanted(hold);
      await server.say('ACL', 'SETUSER', 'ann', `-rlock.${verb}`);
      assert.equal((await failure(hold.giveWay(AT_ONCE))).code, 'NOPERM');
      if (verb === 'release') {
        await server.waiting('jobs', 1); // what was asked for is cancelled
        assert.notEqual((await server.info('jobs')).mode, 'free');
      }
      await server.say('ACL', 'SETUSER', 'ann', `+rlock.${verb}`);
      await isOver(server, hold, await wait);
    }
  }
});

forEach('a loss that it learns of only then', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port), open(server.port)];
  for (const quick of [false, true]) {
    const hold = await locks.acquire('jobs', { lease: 60_000 });
    void hold.signal;
    const { wait } = await waiter(server, others);
    await isWanted(hold);
    proxy.hold();
    await server.say('RLOCK.FORCE', 'jobs');
    const between = await wait;
    const gives = hold.giveWay(AT_ONCE);
    gives.catch(() => {});
    await server.waiting('jobs', 1);
    const { token } = between;
    if (quick) {
      await between.release(); // so it is granted before it learns of the loss
      await until(async () => (await tokenAt(server)) > token, 'it is granted');
    }
    proxy.let();
    assert.equal((await failure(gives)).reason, 'forced');
    await isOver(server, hold, quick ? undefined : between, 'forced');
    await server.free('jobs');
  }
});

forEach('there is no connection any more', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port, { timeout: 5000 }), open(server.port)];
  const hold = await locks.acquire('jobs', { watchdog: false, lease: 60_000 });
  const { wait } = await waiter(server, others);
  await isWanted(hold);
  proxy.to = 1; // where nobody listens
  proxy.close();
  assert.equal((await failure(hold.giveWay({ ...AT_ONCE, wait: 500 }))).name, 'ConnectionError');
  assert.equal(hold.lost.reason, 'released');
  proxy.to = server.port; // and what is left to say is said there
  await isOver(server, hold, await wait);
});

forEach('it is released, or the locks are closed, meanwhile', async (t, open) => {
  const server = await Server.start(t);
  const others = open(server.port);
  for (const how of ['release', 'close']) {
    const locks = open(server.port);
    const hold = await locks.acquire('jobs');
    void hold.signal;
    const { gives, between } = await begin(server, hold, await waiter(server, others));
    await (how === 'release' ? hold.release() : locks.close());
    const error = await failure(gives);
    assert.equal(error.name, how === 'release' ? 'LostError' : 'ConnectionError');
    await isOver(server, hold, between);
  }
});

forEach('a release in whichever moment leaves nothing', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  for (let turns = 0; turns < 12; turns++) {
    const hold = await locks.acquire('jobs');
    const { gives, between } = await begin(server, hold, await waiter(server, others));
    await between.release();
    // Until it is granted, and then some microtasks more.
    if (turns % 2) await until(async () => (await holders(server)).length, 'it is granted');
    for (let n = 0; n < turns; n++) await undefined;
    await hold.release();
    await gives.catch((error) => assert.equal(error.reason, 'released'));
    await server.free('jobs');
    assert.equal((await failure(hold.renew())).reason, 'released');
  }
});

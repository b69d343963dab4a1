// A hold gives way to whoever waits, and is a hold again.
import assert from 'node:assert/strict';
import { Cluster } from './tools/cluster.js';
import { forEach } from './tools/libraries.js';
import { Proxy } from './tools/proxy.js';
import { Server } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';
import { AT_ONCE, begin, holders, isWanted, said, tokenAt, waiter } from './tools/way.js';

const HOW = {
  'with the watchdog': {}, 'without it': { watchdog: false, lease: 60_000 }, reading: { mode: 'read' }, writing: { mode: 'write' },
  'with permits': { limit: 4, permits: 2 },
};

forEach('who waits is served in between, by one write', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port), open(server.port)];
  for (const how of Object.values(HOW)) {
    const other = how.limit ? { limit: 4, permits: 4 } : { mode: how.mode && 'write' };
    const hold = await locks.acquire('jobs', how);
    const { token } = hold;
    const before = proxy.pieces.length;
    const { gives, between } = await begin(server, hold, await waiter(server, others, other));
    assert(between.token > token);
    assert.equal(hold.lost, null);
    assert.equal(hold.wanted, false);
    for (const use of [hold.renew(), hold.giveWay(AT_ONCE)]) assert.equal((await failure(use)).reason, 'released');
    const both = proxy.pieces.slice(before).filter((piece) => /RLOCK\.(RELEASE|ACQUIRE)/.test(piece));
    assert.match(both.join('and another write'), /^[^]*RLOCK\.RELEASE[^]*IFTOKEN[^]*RLOCK\.ACQUIRE[^]*QUEUE[^]*WANTED\r\n$/);
    assert.equal(both.length, 1);
    await between.release();
    assert.equal(await gives, true);
    assert(hold.token > between.token);
    assert.equal(hold.lost, null);
    const [here] = await holders(server);
    assert.deepEqual([here.token, here.owner], [hold.token, hold.owner]);
    await hold.renew();
    await hold.release();
    await server.free('jobs');
  }
});

forEach('nobody waits, or it is too young', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port), open(server.port)];
  const hold = await locks.acquire('jobs');
  const { token } = hold;
  const before = proxy.pieces.length;
  for (let n = 0; n < 20; n++) assert.equal(await hold.giveWay(AT_ONCE), false);
  const { wait } = await waiter(server, others);
  await isWanted(hold);
  for (const least of [60_000, Infinity]) assert.equal(await hold.giveWay({ least }), false);
  await hold.renew(); // behind whatever else it may have said
  assert.deepEqual(said(proxy, before), ['RLOCK.RENEW', 'RLOCK.RENEW']);
  assert.equal(await tokenAt(server), token);
  const gave = until(() => hold.giveWay({ least: 500 }), 'it is old enough', 60_000);
  await (await wait).release();
  assert.equal(await gave, true);
  await waiter(server, others);
  await isWanted(hold);
  assert.equal(await hold.giveWay({ least: 60_000 }), false); // counted from the last grant
  await hold.release();
});

forEach('in the order of the queue', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const hold = await locks.acquire('jobs');
  const tokens = [];
  const turns = [];
  for (let n = 1; n < 4; n++) {
    turns.push(others.using('jobs', { wait: Infinity }, (signal, { token }) => void tokens.push(token)));
    await server.waiting('jobs', n);
  }
  await isWanted(hold);
  assert.equal(await hold.giveWay(AT_ONCE), true);
  assert.equal(tokens.length, 3);
  assert(hold.token > Math.max(...tokens));
  assert.equal(await hold.giveWay(AT_ONCE), false);
  await Promise.all([...turns, hold.release()]);
});

forEach('it is wanted again by whoever waits behind it, and nothing more is asked', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port), open(server.port)];
  const hold = await locks.acquire('jobs');
  const first = await begin(server, hold, await waiter(server, others));
  const second = await waiter(server, others, {}, 2);
  const from = proxy.pieces.length;
  await first.between.release();
  assert.equal(await first.gives, true);
  assert.equal(await hold.untilWanted(), true);
  assert.deepEqual(said(proxy, from), []);
  const { gives, between } = await begin(server, hold, second);
  await between.release();
  assert.equal(await gives, true);
  assert.equal(hold.wanted, false); // what was said before is not counted
  await hold.release();
});

forEach('its lease is that of now, and max is counted anew', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const long = await locks.acquire('jobs', { watchdog: false, lease: 20_000 });
  await long.renew(600_000);
  const one = await begin(server, long, await waiter(server, others));
  await one.between.release();
  assert.equal(await one.gives, true);
  assert((await server.say('PTTL', 'jobs')) > 100_000);
  await long.release();
  const hold = await locks.acquire('jobs', { max: 8000 });
  const two = await begin(server, hold, await waiter(server, others));
  await new Promise((done) => setTimeout(done, 8500)); // so that the first time is over
  await two.between.release();
  assert.equal(await two.gives, true);
  assert.equal(hold.lost, null);
  assert.equal(await lost(hold), 'max');
});

forEach('who wants to know of its loss learns of that of the new one', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const hold = await locks.acquire('jobs');
  const seen = [];
  const { signal } = hold;
  signal.addEventListener('abort', () => seen.push(signal.reason.reason));
  const { gives, between } = await begin(server, hold, await waiter(server, others));
  await between.release();
  assert.equal(await gives, true);
  assert.equal(hold.signal, signal);
  await hold.renew();
  assert.deepEqual(seen, []);
  await server.say('RLOCK.FORCE', 'jobs');
  assert.equal(await lost(hold), 'forced');
  await until(() => seen.length, 'it is notified');
  assert.deepEqual(seen, ['forced']);
  assert.equal((await failure(hold.release())).reason, 'forced');
});

forEach('other locks of its job stay', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const job = locks.job();
  const [other, hold] = [await job.acquire('other'), await job.acquire('jobs')];
  for (let n = 0; n < 3; n++) {
    const { gives, between } = await begin(server, hold, await waiter(server, others));
    assert.equal(await tokenAt(server, 'other'), other.token);
    assert.equal((await failure(job.acquire('jobs'))).name, 'HeldByJobError');
    await between.release();
    assert.equal(await gives, true);
    assert.deepEqual([hold.owner, (await holders(server))[0].owner], [job.owner, job.owner]);
  }
  assert.equal(other.lost, null);
  await hold.release();
  await server.free('jobs');
  await (await job.acquire('jobs')).release();
  await other.release();
});

forEach('a connection that breaks meanwhile does not end it', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port), open(server.port)];
  for (const how of [{}, { watchdog: false, lease: 60_000 }]) {
    for (const by of [locks, locks.job()]) {
      for (const early of [true, false]) {
        const hold = await by.acquire('jobs', how);
        const { wait } = await waiter(server, others);
        await isWanted(hold);
        if (early) proxy.cut('RLOCK.RELEASE'); // both are carried out, and neither is answered
        const gives = hold.giveWay(AT_ONCE);
        gives.catch(() => {});
        const between = await wait;
        await server.waiting('jobs', 1);
        if (!early) proxy.close();
        await between.release();
        assert.equal(await gives, true);
        assert(hold.token > between.token);
        assert.equal(await tokenAt(server), hold.token);
        await hold.release();
        await server.free('jobs');
      }
    }
  }
});

forEach('without the module, and with an older one', async (t, open) => {
  const plain = await Server.plain(t);
  const [here, there] = [open(plain.port), open(plain.port)];
  const bare = await here.acquire('jobs');
  const waits = there.acquire('jobs', { wait: Infinity });
  for (let n = 0; n < 3; n++) {
    assert.equal(await bare.giveWay(AT_ONCE), false);
    await bare.renew();
  }
  await bare.release();
  await (await waits).release();

  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port), open(server.port)];
  const watched = await locks.acquire('jobs');
  const { gives, between } = await begin(server, watched, await waiter(server, others));
  proxy.instead('WANTED', 'WANTET'); // which it does not know
  proxy.close();
  await until(() => proxy.said.split('\r\nQUEUE\r\n').length === 4, 'it is asked again without the word');
  await between.release();
  assert.equal(await gives, true);
  const { wait } = await waiter(server, others);
  assert.equal(await watched.giveWay(AT_ONCE), false);
  await watched.renew();
  assert.equal(await watched.giveWay(AT_ONCE), false);
  await watched.release();
  await (await wait).release();
});

forEach('in a cluster', async (t, open) => {
  const cluster = await Cluster.start(t);
  const [locks, others] = [0, 1].map(() => open(cluster.masters[0].port, { cluster: true }));
  for (const key of ['a', 'b', 'c']) {
    for (const by of [locks, locks.job()]) {
      const hold = await by.acquire(key);
      const next = others.acquire(key, { wait: Infinity });
      await isWanted(hold);
      const gives = hold.giveWay(AT_ONCE);
      await (await next).release();
      assert.equal(await gives, true);
      await hold.release();
    }
  }
});

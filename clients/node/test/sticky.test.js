// A lock that stays with the program between its uses.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from './tools/cluster.js';
import { forEach } from './tools/libraries.js';
import { Proxy } from './tools/proxy.js';
import { Server } from './tools/server.js';
import { begins, begun, isSettled, nothing, ownerOf } from './tools/sticky.js';
import { failure, until } from './tools/until.js';
import { said, tokenAt, waiter } from './tools/way.js';

forEach('bad arguments are refused, and nothing is sent', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  for (const bad of [null, 7, { idle: 1001 }, { idle: -1 }, { idle: '1' }, { wait: Infinity }, { wait: -1 }, { lease: 0 }, { mode: 'read' }, { max: 1 }]) {
    assert.throws(() => locks.sticky('jobs', bad), /TypeError|RangeError/);
  }
  for (const key of ['', 7, undefined, ['jobs'], 'half \ud800']) assert.throws(() => locks.sticky(key), /TypeError|RangeError/);
  const sticky = locks.sticky('jobs', { idle: 0, wait: 0, lease: 60_000 });
  assert.equal(sticky.key, 'jobs');
  for (const use of [sticky.use(), sticky.use(7), sticky.use({}), sticky.use({ wait: 1 }, nothing), sticky.use({ signal: 1 }, nothing)]) {
    assert.equal((await failure(use)).name, 'TypeError');
  }
  await sticky.close();
  assert.equal(proxy.said, '');
});

forEach('a use of a lock that is here costs no message', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const sticky = open(proxy.port).sticky('jobs');
  await until(async () => {
    await ownerOf(sticky);
    const from = proxy.pieces.length;
    const owner = await ownerOf(sticky);
    for (let n = 0; n < 500; n++) {
      if ((await ownerOf(sticky)) !== owner) return false; // its second was over
      if ((await sticky.use(async () => n)) !== n) assert.fail('its result');
    }
    return said(proxy, from).length === 0;
  }, 'a thousand uses of one acquisition');
  await server.free('jobs'); // when it was idle
  await sticky.use(nothing);
  await sticky.close();
  assert.equal((await server.info('jobs')).mode, 'free');
});

forEach('a body that fails ends its use', async (t, open) => {
  const server = await Server.start(t);
  const sticky = open(server.port).sticky('jobs');
  const own = new Error('own');
  const thenable = { then: (done, fails) => fails(own) };
  for (const body of [() => { throw own; }, async () => { throw own; }, () => thenable, () => Object.assign(() => {}, thenable)]) {
    assert.equal(await failure(sticky.use(body)), own);
    const one = await begun(sticky);
    const next = begins(sticky);
    assert.equal(await isSettled(next.begun), false);
    assert.equal(await one.end('result'), 'result');
    await next.begun;
    await next.end();
  }
  assert.equal(await failure(sticky.use(() => { throw undefined; })), undefined);
  await sticky.use(nothing);
});

forEach('a use that has lost the lock keeps its turn, and ends with that', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const sticky = locks.sticky('jobs');
  const first = await begun(sticky);
  const { signal } = first.use;
  const second = begins(sticky);
  await server.say('RLOCK.FORCE', 'jobs');
  await until(() => signal.aborted, 'its signal');
  assert.equal(signal.reason.reason, 'forced');
  assert.equal(first.use.lost.reason, 'forced');
  assert.equal((await failure(first.use.token())).reason, 'forced');
  const other = await others.acquire('jobs');
  assert.equal(await isSettled(second.begun), false);
  const own = new Error('own');
  const error = await first.fails(own);
  assert.deepEqual([error.name, error.reason, error.cause], ['LostError', 'forced', own]);
  await server.waiting('jobs', 1);
  await other.release();
  const use = await second.begun;
  assert((await use.token()) > other.token);
  assert.notEqual(use.owner, first.use.owner);
  assert.equal(use.lost, null);
  assert.equal(use.signal.aborted, false);
  await second.end();
  // A signal that is asked for when it is lost already, and a token when the use is over.
  const late = await begun(sticky);
  await server.say('RLOCK.FORCE', 'jobs');
  await until(() => late.use.lost, 'the loss');
  assert.equal(late.use.signal.reason, late.use.lost);
  assert.equal((await failure(late.end())).reason, 'forced');
  const over = await begun(sticky);
  await over.end();
  assert.equal((await failure(over.use.token())).reason, 'released');
});

forEach('each use that asks has a greater token', async (t, open) => {
  const server = await Server.start(t);
  const sticky = open(server.port).sticky('jobs');
  let last = 0;
  for (let n = 0; n < 300; n++) {
    await sticky.use(async (use) => {
      const [token, same] = await Promise.all([use.token(), use.token()]);
      assert(token > last, `${token} after ${last}`);
      assert.deepEqual([same, await use.token()], [token, token]);
      last = token;
      if (n % 50 === 0) assert.equal(await tokenAt(server, 'jobs'), token);
    });
  }
});

forEach('who polls gets it too, though the uses never end', async (t, open) => {
  const server = await Server.start(t);
  const [sticky, others] = [open(server.port).sticky('jobs'), open(server.port)];
  let uses = 0;
  let over = false;
  const work = async () => {
    while (!over) {
      await sticky.use(nothing);
      if (++uses % 100 === 0) await new Promise(setImmediate);
    }
  };
  const works = [work(), work()];
  for (let n = 0; n < 3; n++) {
    const before = uses;
    await until(() => uses > before + 1000, 'some uses');
    await until(async () => {
      try {
        await (await others.acquire('jobs')).release();
        return true;
      } catch (error) {
        assert.equal(error.name, 'NotAcquiredError');
        return sleep(1, false);
      }
    }, 'the lock by polling');
  }
  over = true;
  await Promise.all(works);
});

forEach('it goes to whoever waits, and comes back', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const sticky = locks.sticky('jobs');
  for (const others of [open(server.port), locks]) {
    await sticky.use(nothing);
    await (await others.acquire('jobs', { wait: Infinity })).release(); // though it is idle
    const one = await begun(sticky);
    const next = begins(sticky);
    const { wait } = await waiter(server, others);
    await sleep(20); // so long it stays for those who wait here
    await one.end();
    const other = await wait;
    await server.waiting('jobs', 1);
    await other.release();
    await next.begun;
    await next.end();
  }
});

forEach('hundreds of tasks count exactly', async (t, open) => {
  const server = await Server.start(t);
  const [one, two] = [open(server.port).sticky('jobs'), open(server.port).sticky('jobs')];
  const third = open(server.port);
  let number = 0;
  const add = async (after) => {
    const read = number;
    await after();
    number = read + 1;
  };
  const waits = [() => null, () => Promise.resolve(), () => new Promise(setImmediate)];
  const each = (times, scope) =>
    Array.from({ length: 100 }, async (_, i) => {
      for (let n = 0; n < times; n++) await scope(() => add(waits[(i + n) % 3]));
    });
  await Promise.all([
    ...each(20, (body) => one.use(body)),
    ...each(20, (body) => two.use(body)),
    ...each(2, (body) => third.using('jobs', { wait: Infinity }, body)),
  ]);
  assert.equal(number, 4200);
});

forEach('in a cluster it is at the node that has its slot', async (t, open) => {
  const cluster = await Cluster.start(t);
  const [locks, others] = [0, 0].map(() => open(cluster.masters[0].port, { cluster: true }));
  for (const key of ['a', 'b', 'c']) {
    const sticky = locks.sticky(key);
    for (let n = 0; n < 3; n++) {
      await sticky.use(nothing);
      await (await others.acquire(key, { wait: Infinity })).release();
    }
    await sticky.close();
  }
});

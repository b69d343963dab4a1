// A hold learns that somebody waits for it.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from './tools/cluster.js';
import { forEach } from './tools/libraries.js';
import { Proxy } from './tools/proxy.js';
import { Server } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';

/** Whoever waits for `jobs`, until that is over. */
async function waiter(server, locks, how = {}) {
  const abort = new AbortController();
  const wait = locks.acquire('jobs', { wait: Infinity, signal: abort.signal, ...how });
  wait.catch(() => {});
  await server.waiting('jobs', 1);
  return {
    wait,
    async leave() {
      abort.abort();
      await server.waiting('jobs', 0);
    },
  };
}

const isWanted = (hold) => until(() => hold.wanted, 'it is wanted', 60_000);
const isNot = (hold) => until(() => !hold.wanted, 'it is not wanted any more', 60_000);

/** Whether it is wanted, when what the server said before was read: the answer to a command comes behind it. */
async function wantedNow(hold) {
  void hold.wanted;
  await hold.renew();
  return hold.wanted;
}

/** How many commands with the word went through the proxy. */
const asked = (proxy) => proxy.said.split('\r\nWANTED\r\n').length - 1;

const renewals = async (server, what = 'calls') =>
  Number(new RegExp(`cmdstat_rlock.renew:.*?\\b${what}=(\\d+)`).exec(await server.say('INFO', 'commandstats'))?.[1] ?? 0);

const HOW = {
  'with the watchdog': {}, 'without it': { watchdog: false, lease: 60_000 }, reading: { mode: 'read' }, writing: { mode: 'write' },
  'with permits': { limit: 4, permits: 2 },
};

forEach('somebody begins to wait, or waits already', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port), open(server.port)];
  for (const how of Object.values(HOW)) {
    const other = how.limit ? { limit: 4, permits: 3 } : { mode: how.mode && 'write' };
    const hold = await locks.acquire('jobs', how);
    assert.equal(hold.wanted, false);
    const both = [hold.untilWanted(), hold.untilWanted()];
    const first = await waiter(server, others, other);
    assert.deepEqual(await Promise.all(both), [true, true]);
    await hold.release();
    assert.equal(hold.wanted, false);
    const next = await first.wait;
    await next.release();

    const again = await locks.acquire('jobs', how);
    const second = await waiter(server, others, other);
    const before = asked(proxy);
    assert.equal(await again.untilWanted(), true);
    assert.equal(asked(proxy), before + 1);
    assert.equal(again.lost, null);
    await again.release();
    await (await second.wait).release();
  }
});

forEach('it ends by itself, and may begin again', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const hold = await locks.acquire('jobs', { lease: 6000 });
  assert.equal(hold.wanted, false);
  for (let n = 0; n < 2; n++) {
    const other = await waiter(server, others);
    await isWanted(hold);
    await sleep(4000); // so that what was said first is too old
    await isWanted(hold);
    await other.leave();
    await isNot(hold);
  }
  const wait = hold.untilWanted();
  await waiter(server, others);
  assert.equal(await wait, true);
  await hold.release();
});

forEach('who only tries does not count, nor one who reads beside those who read', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const hold = await locks.acquire('jobs');
  void hold.wanted;
  for (let n = 0; n < 3; n++) assert.equal((await failure(others.acquire('jobs'))).name, 'NotAcquiredError');
  assert.equal(await wantedNow(hold), false);
  await hold.release();

  const reader = await locks.acquire('jobs', { mode: 'read' });
  void reader.wanted;
  const beside = await others.acquire('jobs', { mode: 'read', wait: 60_000 });
  assert.equal(await wantedNow(reader), false);
  const writer = await waiter(server, others, { mode: 'write' });
  await isWanted(reader);
  await isWanted(beside);
  await writer.leave();
});

forEach('a hold without the watchdog keeps its deadline', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const began = performance.now();
  const hold = await locks.acquire('jobs', { watchdog: false, lease: 12_000 });
  const taken = performance.now();
  await sleep(4000); // so that a lease that began anew would be seen
  const before = performance.now();
  assert.equal(hold.wanted, false);
  await until(async () => (await renewals(server)) === 1, 'the server is asked');
  const left = await server.say('PTTL', 'jobs');
  const [least, most] = [began + 11_900 - performance.now(), taken + 12_100 - before];
  assert(left > least && left < most, `${left} ms are left, and not ${least} to ${most}`);
  assert.equal((await server.info('jobs')).holders[0].watchdog, null);
  const other = await waiter(server, others);
  await isWanted(hold);
  assert(['lease', 'expired'].includes(await lost(hold)));
  assert.equal(hold.wanted, false);
  await (await other.wait).release();
});

forEach('a renewal that is under way stands', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  for (const watchdog of [true, false]) {
    const hold = await locks.acquire('jobs', { watchdog, lease: 20_000 });
    const renewal = hold.renew(600_000);
    assert.equal(hold.wanted, false);
    await renewal;
    await until(async () => (await renewals(server)) % 2 === 0, 'it is asked');
    assert((await server.say('PTTL', 'jobs')) > 100_000);
    await hold.release();
  }
});

forEach('on the next connection it is asked again, where it was asked before', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const [locks, others] = [open(proxy.port), open(server.port)];
  const plain = { watchdog: false, lease: 60_000 };
  const hold = await locks.acquire('jobs', plain);
  const never = await locks.acquire('never', plain);
  const away = await locks.acquire('away', plain);
  assert.equal(hold.wanted, false);
  await until(async () => (await renewals(server)) === 1, 'it is asked');
  for (let n = 1; n < 3; n++) {
    const before = await renewals(server);
    proxy.close();
    assert.equal(away.wanted, false); // while there is no connection
    await until(async () => (await renewals(server)) >= before + 3, 'they are asked for again');
    assert.equal(asked(proxy), 1 + 2 * n);
  }
  const wait = hold.untilWanted();
  await waiter(server, others);
  assert.equal(await wait, true);
  await server.say('RLOCK.FORCE', 'away');
  assert.equal(await lost(away), 'forced');
  const gone = hold.untilWanted();
  proxy.close();
  await server.say('RLOCK.FORCE', 'jobs');
  assert.equal(await lost(hold), 'expired');
  assert.equal(typeof (await gone), 'boolean'); // it may have been wanted before
  assert.equal(hold.wanted, false);
  assert.equal(never.lost, null);
});

forEach('an older module is asked once on each connection, and nothing fails', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  proxy.instead('WANTED', 'WANTET'); // which it does not know
  const [locks, others] = [open(proxy.port), open(server.port)];
  const plain = { watchdog: false, lease: 60_000 };
  const [hold, watched] = [await locks.acquire('jobs', plain), await locks.acquire('watched')];
  assert.equal(hold.wanted, false);
  await until(() => asked(proxy) === 1, 'it is asked');
  const wait = hold.untilWanted();
  assert.equal(await wantedNow(hold), false);
  await waiter(server, others);
  assert.equal(await wantedNow(watched), false);
  assert.equal(await wantedNow(hold), false);
  assert.equal(asked(proxy), 1);
  for (let n = 2; n < 4; n++) {
    const before = await renewals(server);
    proxy.close();
    await until(async () => (await renewals(server)) >= before + 2, 'it is asked for again, and then without the word');
    assert.equal(asked(proxy), n);
    assert.equal(hold.lost, null);
  }
  assert.equal(await lost(watched), 'connection');
  await server.say('RLOCK.FORCE', 'jobs');
  assert.equal(await lost(hold), 'forced'); // it is notified of that all the same
  assert.equal(await wait, false);
});

forEach('who may not renew is never wanted', async (t, open) => {
  const server = await Server.start(t);
  await server.say('ACL', 'SETUSER', 'ann', 'on', '>secret', '~*', '&*', '+@all', '-rlock.renew');
  const ann = { username: 'ann', password: 'secret' };
  const locks = open(server.port, { client: { 'node-redis': ann, ioredis: ann } });
  const long = { lease: 240_000 }; // for the server renews them by the right of this user
  const holds = [await locks.acquire('jobs', long), await locks.acquire('more', long)];
  assert.deepEqual(holds.map((hold) => hold.wanted), [false, false]);
  await until(async () => (await renewals(server, 'rejected_calls')) === 2, 'both are asked');
  const third = await locks.acquire('third');
  assert.equal(third.wanted, false);
  await third.release();
  assert.equal(await renewals(server, 'rejected_calls'), 2);
  for (const hold of holds) {
    assert.deepEqual([hold.wanted, hold.lost], [false, null]);
    await hold.release();
  }
});

forEach('what a server could not do it is asked again', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const hold = await locks.acquire('jobs', { lease: 240_000 });
  await server.say('CONFIG', 'SET', 'min-replicas-to-write', 1);
  const wait = hold.untilWanted();
  await until(async () => (await renewals(server, 'rejected_calls')) > 1, 'it is asked again');
  await server.say('CONFIG', 'SET', 'min-replicas-to-write', 0);
  await waiter(server, others);
  assert.equal(await wait, true);
  await hold.release();
});

forEach('several keys, and a server without the module, are asked nothing', async (t, open) => {
  for (const [server, keys] of [[await Server.start(t), ['a', 'b']], [await Server.plain(t), 'a']]) {
    const proxy = await Proxy.start(t, server.port);
    const locks = open(proxy.port);
    const hold = await locks.acquire(keys, { watchdog: false, lease: 60_000 });
    assert.equal(await wantedNow(hold), false);
    const wait = hold.untilWanted();
    assert.equal(hold.wanted, false);
    assert.equal(asked(proxy), 0);
    await hold.release();
    assert.equal(await wait, false);
  }
});

forEach('the wait ends with the hold, or with its signal', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const ends = {
    release: (hold) => hold.release(), loss: () => server.say('RLOCK.FORCE', 'jobs'), close: () => locks.close(),
  };
  const abort = new AbortController();
  const reason = new Error('enough');
  const some = await locks.acquire('some');
  const wait = failure(some.untilWanted({ signal: abort.signal }));
  abort.abort(reason);
  assert.equal(await wait, reason);
  assert.equal(await failure(some.untilWanted({ signal: abort.signal })), reason);
  for (const bad of [null, 7, { signal: 1 }, { wait: 1 }]) assert.equal((await failure(some.untilWanted(bad))).name, 'TypeError');
  for (const end of Object.values(ends)) {
    const hold = await locks.acquire('jobs', { wait: 60_000 });
    const waits = [hold.untilWanted(), hold.untilWanted({ signal: new AbortController().signal })];
    await end(hold);
    assert.deepEqual(await Promise.all(waits), [false, false]);
    assert.equal(await hold.untilWanted(), false);
    assert.equal(hold.wanted, false);
  }
});

forEach('it is asked from a listener, by a promise that throws, and behind the end', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const hold = await locks.acquire('jobs');
  const other = await locks.acquire('other');
  const seen = new Promise((done) => other.signal.addEventListener('abort', () => done([other.wanted, hold.wanted])));
  await server.say('RLOCK.FORCE', 'other');
  assert.deepEqual(await seen, [false, false]);
  const { wait } = await waiter(server, others);
  await isWanted(hold);
  const released = hold.release();
  assert.equal(hold.wanted, false);
  await released;
  const next = await wait;
  const thrown = failure(next.untilWanted().then(() => assert.fail('by the program')));
  await waiter(server, locks);
  assert.equal((await thrown).message, 'by the program');
  assert.equal(next.lost, null);
  await next.release();
});

forEach('a message that comes behind the release is nothing, and words behind it are no error', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const hold = await locks.acquire('jobs');
  const [channel] = await server.say('PUBSUB', 'CHANNELS', 'rlock:*');
  const wait = hold.untilWanted();
  await server.say('PUBLISH', channel, 'wanted 1 and more');
  assert.equal(await wait, true);
  assert.equal(hold.wanted, true);
  await hold.release();
  await server.say('PUBLISH', channel, 'wanted 1');
  await (await locks.acquire('jobs')).release();
  assert.equal(hold.wanted, false);
});

forEach('a grant says it too', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  await server.say('RLOCK.ACQUIRE', 'jobs', 'raw', 60_000);
  proxy.instead('$4\r\nONCE\r\n', '$6\r\nWANTED\r\n'); // a request that asks at once, as this client's do not
  const wait = locks.acquire('jobs', { wait: Infinity });
  await server.waiting('jobs', 1);
  const behind = open(server.port).acquire('jobs', { wait: Infinity });
  await server.waiting('jobs', 2);
  await server.say('RLOCK.RELEASE', 'jobs', 'raw');
  const hold = await wait;
  assert.equal(hold.token, (await server.info('jobs')).holders[0].token);
  assert.equal(hold.wanted, true);
  await hold.release();
  await (await behind).release();
});

forEach('in a cluster', async (t, open) => {
  const cluster = await Cluster.start(t);
  const [locks, others] = [0, 1].map(() => open(cluster.masters[0].port, { cluster: true }));
  for (const key of ['a', 'b', 'c']) {
    const hold = await locks.acquire(key);
    const wait = hold.untilWanted();
    const next = others.acquire(key, { wait: Infinity });
    assert.equal(await wait, true);
    await hold.release();
    await (await next).release();
  }
});

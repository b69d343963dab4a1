// What can never work is an error at once, with what to do about it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import ioredis5 from 'ioredis5';
import { createClientPool, createSentinel } from 'redis';
import redis4 from 'redis4';
import { createClient as createClient5, createCluster as createCluster5 } from 'redis5';
import { Locks, NotAcquiredError, RefusedError } from 'rlock-client';
import { NAME } from '../src/link.js';
import { Cluster, keyAt } from './tools/cluster.js';
import { forEach } from './tools/libraries.js';
import { Server } from './tools/server.js';
import { failure } from './tools/until.js';

const PATIENCE = 60_000; // of which nothing may be used
async function atOnce(promise) {
  const began = performance.now();
  const error = await failure(promise);
  assert(performance.now() - began < 30_000, `it took ${performance.now() - began} ms`);
  return error;
}

test('what is no client, or one that is too old, is an error of the constructor', () => {
  const wrong = ['redis://127.0.0.1', undefined, null, {}, 7, createClientPool(), { duplicate() {} }, Locks];
  wrong.push(createSentinel({ name: 'main', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] }));
  for (const client of wrong) assert.throws(() => new Locks(client), TypeError, String(client));
  for (const client of [redis4.createClient(), redis4.createCluster({ rootNodes: [{}] })]) {
    assert.throws(() => new Locks(client), { name: 'TypeError', message: /redis 5 or newer/ });
  }
  const lazy = { lazyConnect: true };
  for (const client of [new ioredis5(lazy), new ioredis5.Cluster([{ port: 1 }], lazy)]) {
    assert.throws(() => new Locks(client), { name: 'TypeError', message: /ioredis 6 or newer/ });
  }
  assert.throws(() => new Locks(createClient5(), { timeuot: 5 }), { name: 'TypeError', message: /no option 'timeuot'/ });
  assert.throws(() => new Locks(createClient5(), { backend: 'functions' }), { name: 'TypeError', message: /only be 'module'/ });
  assert.throws(() => new Locks(createClient5(), null), TypeError);
  assert.throws(() => new Locks(createClient5(), { timeout: 0 }), RangeError);
});

test('redis 5 does', async (t) => {
  const server = await Server.start(t);
  const locks = new Locks(createClient5({ url: `redis://127.0.0.1:${server.port}` }));
  const hold = await locks.acquire('jobs');
  const wait = locks.acquire('jobs', { wait: 30_000 });
  await server.waiting('jobs', 1);
  await hold.release();
  await server.say('RLOCK.FORCE', 'jobs');
  assert.equal((await failure((await wait).release())).reason, 'forced');
  await locks.close();
  const { masters } = await Cluster.start(t);
  const many = new Locks(createCluster5({ rootNodes: [{ url: `redis://127.0.0.1:${masters[0].port}` }] }));
  for (const n of [0, 1, 2]) await (await many.acquire(keyAt(n, 'k'))).release();
  await many.close();
});

forEach('an option that there is not is named', async (t, open) => {
  const locks = open(1);
  for (const call of [() => locks.acquire('a', { waitt: 5 }), () => locks.using('a', { waitt: 5 }, () => {}), () => locks.job().acquire('a', { waitt: 5 })]) {
    const error = await failure(call());
    assert(error instanceof TypeError);
    assert.match(error.message, /no option 'waitt'; there are wait, lease,/);
  }
});

forEach('a name with half of a surrogate pair is refused', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  for (const key of ['a\ud800', '\udc00', ['ok', 'a\udfffb']]) {
    const error = await failure(locks.acquire(key));
    assert(error instanceof TypeError);
    assert.match(error.message, /surrogate/);
  }
  for (const key of ['\u{1f512}', 'é', '\0']) await (await locks.acquire(key)).release();
});

forEach('a server without the module, for locks that want no other', async (t, open) => {
  const server = await Server.plain(t);
  const locks = open(server.port, { timeout: PATIENCE, backend: 'module' });
  const error = await atOnce(locks.acquire('a', { wait: PATIENCE }));
  assert(error instanceof RefusedError);
  assert.equal(error.code, 'ERR');
  assert.equal(locks.backend, undefined);
  assert.equal(error.message, 'the server has no rlock module: load librlock.so (loadmodule), see the README');
});

forEach('the client of one server at a cluster, and of a cluster at one server', async (t, open) => {
  const node = (await Cluster.start(t)).masters[0];
  const plain = await atOnce(open(node.port, { timeout: PATIENCE }).acquire(keyAt(0, 'k'), { wait: Infinity }));
  assert.equal(plain.code, 'CLUSTER');
  assert.match(plain.message, /this is a node of a cluster: give Locks the cluster client/);
  const server = await Server.start(t);
  const cluster = await atOnce(open(server.port, { cluster: true, timeout: PATIENCE }).acquire('k', { wait: Infinity }));
  assert(cluster instanceof RefusedError);
  assert.match(cluster.message, /this is no node of a cluster: give Locks a client of one server/);
});

const USERS = {
  'a wrong password': ['on', '>secret', '~*', '&*', '+@all'],
  'no such user': null,
  'no right to the channel': ['on', '>wrong', '~*', 'resetchannels', '+@all'],
  'no right to SUBSCRIBE': ['on', '>wrong', '~*', '&*', '+@all', '-subscribe', '-ssubscribe'],
  'no right to the key': ['on', '>wrong', '~other', '&*', '+@all'],
  'no right to the command': ['on', '>wrong', '~*', '&*', '+@all', '-rlock.acquire'],
};
for (const [what, rules] of Object.entries(USERS)) {
  for (const cluster of [false, true]) {
    forEach(`${what} is refused at once${cluster ? ' in a cluster' : ''}`, async (t, open) => {
      const servers = cluster ? (await Cluster.start(t)).masters : [await Server.start(t)];
      for (const server of servers) if (rules) await server.say('ACL', 'SETUSER', 'ann', ...rules);
      const ann = { username: 'ann', password: 'wrong' };
      const locks = open(servers[0].port, { cluster, timeout: PATIENCE, client: { 'node-redis': ann, ioredis: ann } });
      for (const wait of [undefined, PATIENCE, Infinity]) {
        const error = await atOnce(locks.acquire(keyAt(0, 'k'), { wait }));
        assert(error instanceof RefusedError, String(error));
        assert(['WRONGPASS', 'NOPERM'].includes(error.code), error.code);
      }
    });
  }
}

forEach('a connection has a name, unless its user may not give it one', async (t, open) => {
  const server = await Server.start(t);
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
  assert.equal(NAME, `rlock-node-${version}`);
  const names = async () => [...(await server.say('CLIENT', 'LIST', 'TYPE', 'pubsub')).matchAll(/ name=(\S*)/g)].map(([, name]) => name);
  const locks = open(server.port);
  const hold = await locks.acquire('a');
  assert.deepEqual(await names(), [NAME]);
  await hold.release();
  await locks.close();
  const own = { 'node-redis': { name: 'nightly' }, ioredis: { connectionName: 'nightly' } };
  const named = open(server.port, { client: own });
  await named.acquire('a');
  assert.deepEqual(await names(), ['nightly']);
  await named.close();
  await server.say('ACL', 'SETUSER', 'ann', 'on', '>secret', '~*', '&rlock:*', '+@all', '-client', '-hello', '-info');
  const ann = { username: 'ann', password: 'secret' };
  await open(server.port, { client: { 'node-redis': ann, ioredis: ann } }).acquire('a');
  assert.deepEqual(await names(), ['']);
});

forEach('the error says who has it when it is this very program', async (t, open) => {
  const server = await Server.start(t);
  const [locks, other] = [open(server.port), open(server.port)];
  const hold = await locks.acquire('jobs');
  for (const how of [{}, { wait: 50 }]) {
    const mine = await failure(locks.acquire('jobs', how));
    assert(mine instanceof NotAcquiredError);
    assert.deepEqual([mine.keys, mine.heldBy], [['jobs'], hold.owner]);
    assert.match(mine.message, /^jobs: this program has it itself$/);
  }
  const theirs = await failure(other.acquire(['a', 'jobs']));
  assert.deepEqual([theirs.keys, theirs.heldBy], [['a', 'jobs'], undefined]);
  await hold.release();
  await other.acquire('jobs');
  assert.equal((await failure(locks.acquire('jobs'))).heldBy, undefined);
});

test('no UUID comes from those that Node has ready', async () => {
  for (const file of ['locks.js', 'link.js', 'plain.js']) {
    const text = await readFile(new URL(`../src/${file}`, import.meta.url), 'utf8');
    for (const [call] of text.matchAll(/randomUUID\([^)]*\)/g)) assert.match(call, /disableEntropyCache: true/);
  }
});

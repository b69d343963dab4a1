// Servers without the module: the library stands for it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { LostError, NotAcquiredError, RefusedError } from 'rlock-client';
import { made } from '../scripts/lua.js';
import { AGAIN } from '../src/backend.js';
import { callOf, near, wordsOf } from '../src/library.js';
import { Cluster, keyAt } from './tools/cluster.js';
import { forEach } from './tools/libraries.js';
import { Proxy } from './tools/proxy.js';
import { MODULE, Server } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';

// Once for the whole process.
const warned = new Promise((done) => process.once('warning', done));

const RAW = 'raw';
/** Somebody else's lock. */
const take = (server, key, lease = 60_000) => server.say('FCALL', 'rlock1_acquire', 1, key, RAW, lease);
const drop = (server, key) => server.say('FCALL', 'rlock1_release', 1, key, RAW);
const places = (server, key) => server.say('ZCARD', `rlock1_queue:{${key}}`);
const calls = async (server) => Number(/cmdstat_fcall:calls=(\d+)/.exec(await server.say('INFO', 'commandstats'))?.[1] ?? 0);
const holder = async (server, key) => (await server.say('HGETALL', key));

async function plain(t, ...more) {
  const server = await Server.plain(t, ...more);
  await server.say('FUNCTION', 'LOAD', await readFile(new URL('../src/rlock.lua', import.meta.url), 'utf8'));
  return server;
}

test('the text in the package is the library', async () => {
  const text = (file) => readFile(new URL(file, import.meta.url), 'utf8');
  assert((await text('../src/rlock-lua.js')) === made(), 'npm run lua');
  const source = await text('../../../lua-compat/rlock.lua').catch(() => undefined);
  assert(source === undefined || (await text('../src/rlock.lua')) === source, 'make lua');
});

test('commands become calls, with the keys that belong to a lock', () => {
  const functions = { kind: 'functions', sha: '' };
  const call = callOf(['RLOCK.ACQUIRE', 'QUEUE', 'NOTIFY', 5, 'LIMIT', 3, 'PERMITS', 2, 'QUEUE', 70, 'NOTIFY', 'c', 9, 'ONCE', 'WATCHDOG']);
  assert.deepEqual([call.wait, call.tag], [70, '9']);
  const beyond = ['redisson_lock_token:{QUEUE}', 'rlock1_queue:{QUEUE}', 'rlock1_places:{QUEUE}'];
  assert.deepEqual(wordsOf(functions, true, call, ['PLACE', 'n', 0]), [
    'FCALL', 'rlock1_acquire', 4, 'QUEUE', ...beyond, 'NOTIFY', '5', 'LIMIT', '3', 'PERMITS', '2', 'ONCE', 'PLACE', 'n', 0,
  ]);
  const script = { kind: 'script', sha: 'f00' };
  assert.deepEqual(wordsOf(script, true, callOf(['RLOCK.RELEASE', '{a}b', 'o']), []), [
    'EVALSHA', 'f00', 3, '{a}b', 'rlock1_queue:{a}b', 'rlock1_places:{a}b', 'CLUSTER', 'rlock1_release', 'o',
  ]);
  assert.deepEqual(wordsOf(script, false, callOf(['RLOCK.MRELEASE', 2, '{a}b', 'job}', 'o']), []), [
    'EVALSHA', 'f00', 2, '{a}b', 'job}', 'rlock1_mrelease', 'o',
  ]);
  const byToken = callOf(['RLOCK.RELEASE', 'a', 'o', 'PERMITS', 2, 'IFTOKEN', 7]);
  assert.deepEqual(byToken.args, ['o', 'PERMITS', '2']);
  for (const key of ['a{b', '{}', 'job}', '{}x{y}']) assert(!near(key), key);
  for (const key of ['a', 'a}{b}', '{x}{y}']) assert(near(key), key);
});

forEach('the library is loaded where it is missing, and the program can see what there is', async (t, open) => {
  const server = await Server.plain(t);
  const [one, two] = [open(server.port), open(server.port)];
  assert.equal(one.backend, undefined);
  const holds = await Promise.all([one.acquire('a'), two.acquire('b'), one.acquire(['c', 'd']), two.acquire('r', { mode: 'read' })]);
  assert.deepEqual([one.backend, two.backend], ['functions', 'functions']);
  assert.match((await warned).message, /no rlock module/);
  for (const hold of holds) await hold.release();
  const left = await server.say('KEYS', '*');
  assert.deepEqual(left.filter((key) => !key.startsWith('redisson_lock_token')), []);
});

forEach('a release is a message, and one process tries for all its waits', async (t, open) => {
  const server = await plain(t);
  const locks = open(server.port);
  await take(server, 'jobs');
  const waits = Array.from({ length: 40 }, () => locks.using('jobs', { wait: 30_000 }, () => performance.now()));
  await until(async () => (await places(server, 'jobs')) === 1, 'it has a place');
  await server.say('CONFIG', 'RESETSTAT');
  const reset = performance.now();
  await sleep(2000);
  const tried = await calls(server);
  const seconds = (performance.now() - reset) / 1000;
  assert(tried <= 4 * seconds + 4, `${tried} tries in ${seconds} s`); // each for itself would be 40 in each second
  const began = performance.now();
  await drop(server, 'jobs');
  const ends = await Promise.all(waits);
  assert(Math.max(...ends) - began < 10_000, `${Math.max(...ends) - began} ms for 40 hand-overs`);
  assert.equal(await places(server, 'jobs'), 0);
});

forEach('by turns: another process does not overtake who has a place', async (t, open) => {
  const server = await plain(t);
  const [one, two] = [open(server.port), open(server.port)];
  await take(server, 'jobs');
  const order = [];
  const first = one.using('jobs', { wait: Infinity }, () => order.push(1));
  await until(async () => (await places(server, 'jobs')) === 1, 'the first has a place');
  const second = two.using('jobs', { wait: Infinity }, () => order.push(2));
  await until(async () => (await places(server, 'jobs')) === 2, 'the second has one');
  await drop(server, 'jobs');
  await Promise.all([first, second]);
  assert.deepEqual(order, [1, 2]);
});

forEach('a place outlives its connection', async (t, open) => {
  const server = await plain(t);
  const locks = open(server.port);
  await take(server, 'jobs');
  const wait = locks.acquire('jobs', { wait: 60_000 });
  await until(async () => (await places(server, 'jobs')) === 1, 'it has a place');
  const names = () => server.say('ZRANGE', 'rlock1_queue:{jobs}', 0, -1);
  const before = await names();
  for (let n = 0; n < 3; n++) {
    const tried = await calls(server);
    assert(await server.say('CLIENT', 'KILL', 'TYPE', 'pubsub') > 0);
    await until(async () => (await calls(server)) >= tried + 2, 'it tries on the next one');
    await until(async () => isDeepStrictEqual(await names(), before), 'it has its place');
  }
  // Only one place is there, so it has no dead connection's to wait for.
  assert.equal(before.length, 1);
  await drop(server, 'jobs');
  const hold = await wait;
  await hold.release();
  assert.equal(await places(server, 'jobs'), 0);
});

forEach('a wait that ends or is given up leaves no place', async (t, open) => {
  const server = await plain(t);
  const locks = open(server.port);
  await take(server, 'jobs');
  for (const wait of [1, 60, 400]) assert((await failure(locks.acquire('jobs', { wait }))) instanceof NotAcquiredError);
  const together = [200, 220, 240].map((wait) => failure(locks.acquire('jobs', { wait })));
  for (const error of await Promise.all(together)) assert(error instanceof NotAcquiredError);
  await until(async () => (await places(server, 'jobs')) === 0, 'no place is left');
  const enough = new AbortController();
  const wait = locks.acquire('jobs', { wait: Infinity, signal: enough.signal });
  await until(async () => (await places(server, 'jobs')) === 1, 'it has a place');
  enough.abort(new Error('enough'));
  assert.equal((await failure(wait)).message, 'enough');
  await until(async () => (await places(server, 'jobs')) === 0, 'it has none');
});

forEach('permits, readers and several keys are waited for', async (t, open) => {
  const server = await plain(t);
  const locks = open(server.port);
  const three = await locks.acquire('gpu', { limit: 3, permits: 3 });
  const some = [1, 2].map((permits) => locks.acquire('gpu', { limit: 3, permits, wait: 20_000 }));
  const writer = await locks.acquire('book', { mode: 'write' });
  const readers = [1, 2].map(() => locks.acquire('book', { mode: 'read', wait: 20_000 }));
  const key = await locks.acquire('b');
  const both = locks.acquire(['a', 'b'], { wait: 20_000 });
  await sleep(300);
  for (const hold of [three, writer, key]) await hold.release();
  for (const hold of await Promise.all([...some, ...readers, both])) await hold.release();
});

forEach('a hold is renewed by the client, and the loss of it is found', async (t, open) => {
  const server = await plain(t);
  const locks = open(server.port);
  const [kept, gone, other] = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key, { lease: 6000 })));
  const bounded = await locks.acquire('d', { lease: 6000, max: 7000 });
  await sleep(8000);
  for (const hold of [kept, gone, other]) assert.equal(hold.lost, null);
  assert.equal(bounded.lost?.reason, 'max');
  await server.say('DEL', 'b');
  await server.say('SET', 'c', 'x');
  assert.deepEqual([await lost(gone), await lost(other)], ['deleted', 'overwritten']);
  const several = await locks.acquire(['h', 'i', 'j'], { lease: 6000 });
  await server.say('SET', 'i', 'x');
  assert.equal(await lost(several), 'overwritten');
  await until(async () => (await server.say('EXISTS', 'h', 'j')) === 0, 'the others are released');
  await kept.renew(60_000);
  assert(await server.say('PTTL', 'a') > 50_000);
  assert.equal(await gone.release().catch((error) => error.reason), 'deleted');
  for (const [keys, key] of [['e', 'e'], [['f', 'g'], 'g']]) {
    const forced = await locks.acquire(keys);
    await server.say('FCALL', 'rlock1_force', 1, key);
    assert.equal(await forced.release().catch((error) => error.reason), 'deleted');
  }
});

forEach('a hold whose renewals are not answered is lost with its lease', async (t, open) => {
  const server = await plain(t);
  const began = performance.now();
  const hold = await open(server.port).acquire('a', { lease: 5000 });
  server.signal('SIGSTOP');
  const reason = await lost(hold);
  const after = performance.now() - began;
  server.signal('SIGCONT');
  assert.equal(reason, 'lease');
  // It ends with the lease, which begins when it is asked for; how late the process hears of it, the machine decides.
  assert(after > 4900 && after < 15_000, `${after} ms`);
  await until(async () => (await server.say('EXISTS', 'a')) === 0, 'it is released');
});

forEach('a hold outlives its connections', async (t, open) => {
  const server = await plain(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  const hold = await locks.acquire('a', { lease: 8000 });
  await take(server, 'b');
  const wait = locks.acquire('b', { wait: 30_000 });
  for (let n = 0; n < 4; n++) {
    await sleep(500);
    proxy.close();
  }
  await sleep(7000);
  assert.equal(hold.lost, null);
  assert.equal((await holder(server, 'a'))[hold.owner], '1');
  await drop(server, 'b');
  await (await wait).release();
  await hold.release();
  assert.equal(await server.say('EXISTS', 'a', 'b'), 0);
});

forEach('a lost reply of a grant is asked for again, and is one hold', async (t, open) => {
  const server = await plain(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  await (await locks.acquire('x')).release();
  proxy.cut('rlock1_acquire');
  const hold = await locks.acquire('a');
  assert.equal((await holder(server, 'a'))[hold.owner], '1');
  proxy.cut('rlock1_release');
  await hold.release();
  await until(async () => (await server.say('EXISTS', 'a')) === 0, 'it is released');
});

forEach('each hold of a job has an owner of its own', async (t, open) => {
  const server = await plain(t);
  const job = open(server.port).job();
  const [a, b] = [await job.acquire('a'), await job.acquire('b')];
  assert.equal(new Set([a.owner, b.owner, job.owner]).size, 3);
  await a.release();
  await (await job.acquire('a')).release();
});

const RIGHTS = ['on', '>secret', '~*', '&*', '+@all'];
const ANN = { client: { 'node-redis': { username: 'ann', password: 'secret' }, ioredis: { username: 'ann', password: 'secret' } } };

for (const what of ['FUNCTION', 'SCRIPT']) forEach(`a server that loses the library again and again loses nothing: ${what}`, async (t, open) => {
  const server = await plain(t);
  await server.say('ACL', 'SETUSER', 'ann', ...RIGHTS, ...(what === 'SCRIPT' ? ['-function', '-fcall', '-fcall_ro'] : []));
  const locks = open(server.port, ANN);
  const hold = await locks.acquire('a', { lease: 6000 });
  const end = performance.now() + 7000;
  const flush = async () => {
    while (performance.now() < end) {
      await server.say(what, 'FLUSH');
      await sleep(3);
    }
  };
  let inside = 0;
  const work = async () => {
    while (performance.now() < end) {
      await locks.using('b', { wait: 20_000 }, async () => {
        assert.equal(++inside, 1);
        await sleep(1);
        inside -= 1;
      });
    }
  };
  await Promise.all([flush(), ...Array.from({ length: 5 }, work)]);
  assert.equal(hold.lost, null);
  await hold.release();
});

forEach('by scripts, where functions may not be used', async (t, open) => {
  const server = await Server.plain(t);
  await server.say('ACL', 'SETUSER', 'ann', ...RIGHTS, '-function', '-fcall', '-fcall_ro', '-command');
  const locks = open(server.port, ANN);
  const hold = await locks.acquire('a', { lease: 6000 });
  const wait = locks.acquire('a', { wait: 20_000 });
  await server.say('SCRIPT', 'FLUSH');
  await sleep(7000);
  await server.say('SCRIPT', 'FLUSH');
  assert.equal(hold.lost, null);
  await hold.release();
  await (await wait).release();
  assert.equal(locks.backend, 'script');
});

forEach('who may load nothing is refused, with what an administrator can do', async (t, open) => {
  const server = await Server.plain(t);
  await server.say('ACL', 'SETUSER', 'ann', ...RIGHTS, '-@scripting');
  for (const wait of [undefined, 60_000, Infinity]) {
    const error = await failure(open(server.port, { ...ANN, timeout: 60_000 }).acquire('a', { wait }));
    assert(error instanceof RefusedError);
    assert.equal(error.code, 'NOPERM');
    assert.match(error.message, /no rlock module.*redis-cli -x FUNCTION LOAD/);
  }
});

for (const [backend, commands] of [['functions', '+fcall +fcall_ro +function|load'], ['script', '+evalsha +script|load']]) {
  forEach(`the rights that the README names are enough: ${backend}`, async (t, open) => {
    const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
    assert(readme.includes(commands));
    const line = /^ACL SETUSER (ann on .*\n.*)\+fcall/m.exec(readme)[1];
    const server = await Server.plain(t);
    await server.say('ACL', 'SETUSER', ...`${line} ${commands}`.trim().split(/\s+/));
    const locks = open(server.port, ANN);
    for (const [n, how] of [{}, { mode: 'read' }, { mode: 'write' }, { limit: 2, permits: 2 }].entries()) {
      const hold = await locks.acquire(`jobs:${n}`, how);
      const next = open(server.port, ANN).acquire(`jobs:${n}`, { ...how, wait: 20_000 });
      await sleep(250);
      await hold.renew();
      await hold.release();
      await (await next).release();
    }
    const both = await locks.acquire(['jobs:1', 'jobs:2'], { wait: 20_000 });
    await both.release();
    assert.equal(locks.backend, backend);
  });
}

for (const [what, rules] of Object.entries({
  'the lock': ['resetkeys', '~b'],
  'the queue': ['resetkeys', '~a', '~redisson_lock_token:*'],
  'the messages': ['resetchannels', '&rlock:*'],
  'a command of the library': ['-hset'],
})) {
  forEach(`who may not use ${what} is refused, also when it waits`, async (t, open) => {
    const server = await plain(t);
    await server.say('ACL', 'SETUSER', 'ann', ...RIGHTS, ...rules);
    const locks = open(server.port, { ...ANN, timeout: 60_000 });
    if (what === 'the messages') await take(server, 'a');
    const error = await failure(locks.acquire('a', { wait: Infinity }));
    assert(error instanceof RefusedError, String(error));
    assert.equal(error.code, 'NOPERM');
  });
}

forEach('the module comes: holds and waits go over to it', async (t, open) => {
  const every = AGAIN.every;
  AGAIN.every = 200;
  t.after(() => (AGAIN.every = every));
  const server = await plain(t, '--enable-module-command', 'yes');
  const locks = open(server.port);
  const hold = await locks.acquire('a', { lease: 10_000 });
  await take(server, 'b');
  const wait = locks.acquire('b', { wait: 60_000, lease: 10_000 });
  await until(async () => (await places(server, 'b')) === 1, 'it waits');
  await server.say('MODULE', 'LOAD', MODULE);
  await until(async () => (await server.info('a')).holders?.[0].watchdog > 0, 'the module has its watchdog');
  await server.waiting('b', 1);
  assert.equal(locks.backend, 'module');
  await server.say('RLOCK.RELEASE', 'b', RAW);
  const next = await wait;
  await server.say('RLOCK.FORCE', 'b');
  assert.equal(await lost(next), 'forced');
  assert.equal(hold.lost, null);
  await hold.release();
});

forEach('in a cluster, where a slot moves too', async (t, open) => {
  const cluster = await Cluster.start(t, false, Server.plain);
  const [from, to] = cluster.masters;
  const locks = open(from.port, { cluster: true });
  const keys = [0, 1, 2].map((n) => keyAt(n, 'k'));
  for (const key of [...keys, '{', 'x}', '{}y']) await (await locks.acquire(key, { wait: 20_000 })).release();
  const holds = await Promise.all(keys.map((key) => locks.acquire(key, { lease: 6000 })));
  const waits = keys.map((key) => locks.acquire(key, { wait: 60_000, lease: 6000 }));
  await sleep(400);
  await holds[1].release();
  await (await waits[1]).release();
  await cluster.carry(keys[0], from, to);
  let left = Infinity;
  const grows = async () => {
    const before = left;
    left = await to.say('PTTL', keys[0]);
    return left > before;
  };
  await until(grows, 'it is renewed there');
  assert.equal(holds[0].lost, null);
  for (const n of [0, 2]) {
    await holds[n].release();
    await (await waits[n]).release();
  }
});

forEach('close releases what the client renews', async (t, open) => {
  const server = await plain(t);
  const locks = open(server.port);
  const hold = await locks.acquire('a', { lease: 60_000 });
  const wait = failure(locks.acquire('a', { wait: Infinity }));
  await sleep(200);
  await locks.close();
  assert.equal(await server.say('EXISTS', 'a'), 0);
  assert.equal(hold.lost?.reason, 'closed');
  assert.equal((await wait).name, 'ConnectionError');
  assert((await failure(hold.release())) instanceof LostError);
});

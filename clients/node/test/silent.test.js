// A program that is silent for longer than its patience loses what somebody waits for.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { Locks } from 'rlock-client';
import { forEach } from './tools/libraries.js';
import { Proxy } from './tools/proxy.js';
import { Server } from './tools/server.js';
import { lost, until } from './tools/until.js';

/** Another process that holds `jobs`. */
async function holder(t, library, server, ofLocks, ofLock) {
  const words = [library, server.port, ofLocks, ofLock].map((word) => JSON.stringify(word));
  const child = spawn(process.execPath, [join(import.meta.dirname, 'tools/holder.js'), ...words]);
  t.after(() => child.kill('SIGKILL'));
  let out = '';
  child.stdout.on('data', (data) => (out += data));
  child.stderr.on('data', (data) => (out += data));
  const ended = new Promise((done) => child.once('close', done));
  await until(() => out === 'held\n', 'it holds the lock');
  return {
    stop: () => child.kill('SIGSTOP'),
    go: () => child.kill('SIGCONT'),
    tell: () => child.stdin.write('go on\n'),
    end: () => ended.then(() => out),
  };
}

const stats = async (server, command) =>
  new RegExp(`cmdstat_${command}:calls=(\\d+).*?rejected_calls=(\\d+)`, 'i').exec(await server.say('INFO', 'commandstats'));
const calls = async (server, command) => Number((await stats(server, command))?.[1] ?? 0);
const rejected = async (server, command) => Number((await stats(server, command))?.[2] ?? 0);

/** The patience of each heartbeat that went through the proxy. */
const told = (proxy) => [...proxy.said.matchAll(/RLOCK\.HEARTBEAT\r\n\$\d+\r\n(\d+)/g)].map(([, ms]) => Number(ms));

forEach('stopped for longer than its patience it loses a lock that somebody waits for', async (t, open, library) => {
  const server = await Server.start(t);
  const other = await holder(t, library, server, { patience: 4000 }, { lease: 4000 });
  const wait = open(server.port, { patience: Infinity }).acquire('jobs', { wait: Infinity });
  await server.waiting('jobs', 1);
  // For longer than its patience, in which it is heard.
  const before = await calls(server, 'rlock.heartbeat');
  await until(async () => (await calls(server, 'rlock.heartbeat')) >= before + 5, 'it says that it is alive', 60_000);
  assert.equal((await server.info('jobs')).waiters, 1);
  const began = performance.now();
  other.stop();
  const hold = await wait;
  const took = performance.now() - began;
  assert(took > 1000 && took < 30_000, `it took ${took} ms`);
  other.go();
  assert.equal(await other.end(), 'held\nlost silent\nLostError silent\n');
  assert.equal(hold.lost, null);
  await hold.release();
});

forEach('stopped for a shorter time it loses nothing', async (t, open, library) => {
  const server = await Server.start(t);
  const other = await holder(t, library, server, {}, { lease: 4000 });
  const wait = open(server.port).acquire('jobs', { wait: Infinity });
  await server.waiting('jobs', 1);
  other.stop();
  await sleep(6000);
  other.go();
  assert.equal((await server.info('jobs')).waiters, 1);
  other.tell();
  assert.equal(await other.end(), 'held\nnot lost\nend\n');
  await (await wait).release();
});

forEach('nobody waits, and nothing is lost', async (t, open, library) => {
  const server = await Server.start(t);
  const other = await holder(t, library, server, { patience: 500 }, { lease: 4000 });
  const { token } = (await server.info('jobs')).holders[0];
  other.stop();
  await sleep(6000);
  assert.equal((await server.info('jobs')).holders[0].token, token);
  other.go();
  const before = await calls(server, 'rlock.heartbeat');
  await until(async () => (await calls(server, 'rlock.heartbeat')) > before, 'it is heard of');
  other.tell();
  assert.equal(await other.end(), 'held\nnot lost\nend\n');
});

forEach('the event loop is blocked for longer than the patience', async (t, open) => {
  const server = await Server.start(t);
  const hold = await open(server.port, { patience: 2000 }).acquire('jobs', { lease: 4000 });
  const other = await server.admin.duplicate().on('error', () => {}).connect();
  t.after(() => other.destroy());
  const wait = other.sendCommand(['RLOCK.ACQUIRE', 'jobs', 'other', '60000', 'BLOCK', '0']);
  await server.waiting('jobs', 1);
  assert.equal(hold.lost, null);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 8000);
  assert.equal(await lost(hold), 'silent');
  assert(Number(await wait) > hold.token);
});

forEach('what the server is told', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  await (await locks.acquire('a', { watchdog: false, lease: 3_600_000 })).release();
  // Before the first request, and the leases of holds without the watchdog do not count.
  assert(proxy.said.indexOf('RLOCK.HEARTBEAT') < proxy.said.indexOf('\r\nRLOCK.ACQUIRE\r\n$1\r\na'));
  assert.deepEqual(told(proxy), [30_000]);
  const hold = await locks.acquire('a', { lease: 40_000.5 });
  assert.deepEqual(told(proxy), [30_000, 40_001]);
  await hold.renew(50_000);
  await until(() => told(proxy).at(-1) === 50_000, 'the longest lease is said');
  await hold.release();
  const short = await locks.acquire('a', { lease: 4000 });
  await until(() => told(proxy).at(-1) === 30_000, 'the lease is over');
  const many = told(proxy).length;
  await until(() => told(proxy).length > many + 3, 'it says so again and again');
  await short.release();
  await locks.close();
});

forEach('a patience that is shorter than the lease', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port, { patience: 1 });
  await (await locks.acquire('a', { watchdog: false })).release();
  assert.deepEqual(told(proxy), [300]); // no less
  const hold = await locks.acquire('a', { lease: 4000 });
  await until(() => told(proxy).length > 3, 'it says that it is alive');
  assert.deepEqual([...new Set(told(proxy))], [300, 4000]);
  await hold.release();
  await locks.acquire('a', { lease: 400 });
  await until(() => told(proxy).includes(400), 'the longest lease is another');
});

forEach('without patience there are the PINGs alone, and so without the module', async (t, open) => {
  for (const [server, options] of [[await Server.start(t), { patience: Infinity }], [await Server.plain(t), {}]]) {
    const proxy = await Proxy.start(t, server.port);
    const hold = await open(proxy.port, options).acquire('a', { lease: 4000 });
    const before = await calls(server, 'ping');
    await until(async () => (await calls(server, 'ping')) > before + 5, 'it says PING');
    assert.equal(proxy.said.includes('HEARTBEAT'), false);
    await hold.release();
  }
});

forEach('a server that is too old is said PING', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  proxy.instead('RLOCK.HEARTBEAT', 'RLOCK.HEARTBEET'); // which it does not know
  const locks = open(proxy.port);
  let before = 0; // the next connection may say its own before this program goes on
  for (const connection of [1, 2]) {
    const hold = await locks.acquire('a', { lease: 4000, wait: 20_000 });
    const pings = await calls(server, 'ping');
    await until(async () => (await calls(server, 'ping')) > pings + 4, 'it says PING');
    assert.equal(hold.lost, null);
    const asked = told(proxy).length - before;
    assert(asked >= 1 && asked <= 3, `${asked} heartbeats on connection ${connection}`);
    before += asked;
    proxy.close();
    assert.equal(await lost(hold), 'connection');
  }
});

forEach('who may not say HEARTBEAT says PING, until there is another connection', async (t, open) => {
  const server = await Server.start(t);
  await server.say('ACL', 'SETUSER', 'ann', 'on', '>secret', '~*', '&*', '+@all', '-rlock.heartbeat');
  const ann = { username: 'ann', password: 'secret' };
  const locks = open(server.port, { client: { 'node-redis': ann, ioredis: ann } });
  const hold = await locks.acquire('a', { lease: 4000 });
  const before = await calls(server, 'ping');
  await until(async () => (await calls(server, 'ping')) > before + 4, 'it says PING');
  assert.equal(hold.lost, null);
  const asked = await rejected(server, 'rlock.heartbeat');
  assert(asked >= 1 && asked <= 3, `${asked} heartbeats`);
  await server.say('ACL', 'SETUSER', 'ann', '+rlock.heartbeat');
  await server.say('CLIENT', 'KILL', 'USER', 'ann');
  assert.equal(await lost(hold), 'connection');
  const next = await locks.acquire('a', { lease: 4000, wait: 20_000 });
  await until(async () => (await calls(server, 'rlock.heartbeat')) > 3, 'it says that it is alive');
  await next.release();
});

test('a patience that is none is refused', () => {
  for (const client of [createClient(), new Redis({ lazyConnect: true })]) {
    for (const patience of ['30', null, {}, true]) {
      assert.throws(() => new Locks(client, { patience }), { name: 'TypeError', message: /patience must be a number of ms/ });
    }
    for (const patience of [0, -1, NaN, -Infinity, 2 ** 60]) {
      assert.throws(() => new Locks(client, { patience }), { name: 'RangeError', message: /patience must be 1 to \d+ ms, not/ });
    }
    for (const patience of [undefined, 1, 1e9, Infinity]) void new Locks(client, { patience });
  }
});

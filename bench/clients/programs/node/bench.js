// The benchmark's program in Node: bench.js SIDE PORT WORKERS. Its orders stand in
// bench/clients/language.rs.

import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

import Redis from 'ioredis';
import { createClient } from 'redis';
import RedlockModule from 'redlock';

import { Locks } from './rlock/src/index.js';

const Redlock = RedlockModule.default ?? RedlockModule;
const [KEY, LAST] = ['bench:lock', 'bench:last'];
const [side, port, workers] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const client = createClient({ socket: { port }, RESP: 3 });
let locks;
let count = 0;
let stopped = false;

// One session for all workers.
async function ours(me) {
  while (!stopped) {
    const hold = await locks.acquire(KEY, { wait: Infinity });
    if ((await client.set(LAST, me, { GET: true })) !== me) count++;
    await hold.release();
  }
}

// A client for each worker, with node-redlock's defaults.
async function redlock(me) {
  const own = new Redis({ port });
  const lock = new Redlock([own]);
  while (!stopped) {
    try {
      const held = await lock.acquire([KEY], 30_000);
      if ((await own.set(LAST, me, 'GET')) !== me) count++;
      await held.release();
    } catch {
      // It has tried as often as it does.
    }
  }
}

// ns for each.
async function timed(act, ms) {
  const begin = performance.now();
  let done = 0;
  while (performance.now() < begin + ms) {
    await act();
    done++;
  }
  return Math.round(((performance.now() - begin) * 1e6) / done);
}

function memory() {
  globalThis.gc();
  return process.memoryUsage().rss;
}

const orders = {
  go() {
    for (let n = 0; n < workers; n++) (side === 'rlock' ? ours : redlock)(`${process.pid}:${n}`);
    return 0;
  },
  count: () => count,
  stop() {
    stopped = true;
    return 0;
  },
  pairs: (ms) => timed(async () => (await locks.acquire('bench:free')).release(), ms),
  pings: (ms) => timed(() => client.ping(), ms),
  async crowd(size) {
    const numbers = Array.from({ length: size }, (_, n) => n);
    const other = new Locks(client);
    await Promise.all(numbers.map((n) => other.acquire(`taken:${n}`)));
    const before = memory();
    const holds = await Promise.all(numbers.map((n) => locks.acquire(`held:${n}`)));
    const waits = numbers.map((n) => locks.acquire(`taken:${n}`, { wait: Infinity }));
    waits.forEach((wait) => wait.catch(() => {}));
    while (!(await client.info('rlock')).includes(`rlock_queued:${size}`)) await sleep(10);
    const grown = memory() - before;
    return Math.round(grown / (holds.length + waits.length));
  },
};

if (side === 'rlock') {
  await client.connect();
  locks = new Locks(client);
  await (await locks.acquire(`warm:${process.pid}`)).release();
} else {
  const own = new Redis({ port });
  await (await new Redlock([own]).acquire([`warm:${process.pid}`], 30_000)).release();
  own.disconnect();
}
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const [order, number] = line.split(' ');
  console.log(await orders[order](Number(number)));
}
process.exit(0);

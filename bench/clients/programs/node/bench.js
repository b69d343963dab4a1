// The benchmark's program in Node: bench.js SIDE PORT WORKERS TURNS MS. Its orders
// stand in bench/clients/language.rs.

import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

import Redis from 'ioredis';
import { createClient } from 'redis';
import RedlockModule from 'redlock';

import { Locks } from './rlock/src/index.js';

const Redlock = RedlockModule.default ?? RedlockModule;
const KEY = 'bench:lock';
const SHARED = 'bench:shared';
const side = process.argv[2];
const [port, workers, turns, ms] = process.argv.slice(3).map(Number);
const ours = side.startsWith('rlock');
// A program has one of the two libraries, and rlock's client goes over that.
const client = side === 'rlock-ioredis' ? new Redis({ port, lazyConnect: true }) : createClient({ socket: { port }, RESP: 3 });
const clock = process.hrtime.bigint;
const had = [];
let locks;

// What gives a worker its way to have one turn with a lock.
const sides = {
  // One session for all workers.
  rlock: () => async (key, act) => {
    const hold = await locks.acquire(key, { wait: Infinity });
    act();
    await hold.release();
  },
  'rlock-ioredis': () => sides.rlock(),

  // A client for each worker, with node-redlock's defaults.
  redlock() {
    const redlock = new Redlock([new Redis({ port })]);
    return async (key, act) => {
      try {
        const held = await redlock.acquire([key], 30_000);
        act();
        await held.release();
      } catch {
        // It has tried as often as it does.
      }
    };
  },
};

// One turn with a lock that nobody else wants.
const free = {
  rlock: async () => (await locks.acquire('bench:free')).release(),
  'rlock-ioredis': () => free.rlock(),
  redlock: () => crew[0]('bench:other', () => {}),
};

function warmUp(...two) {
  const end = performance.now() + ms;
  let left = turns;
  const contend = async (turn) => {
    while (left > 0 && performance.now() < end) await turn(`warm:${process.pid}`, () => left--);
  };
  return Promise.all(two.map(contend));
}

async function contend(turn, number) {
  while (true) await turn(KEY, () => had.push(number, clock(), clock()));
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

// How the lock that others want too is taken and released.
function shared(sticky) {
  if (!sticky) return async () => (await locks.acquire(SHARED, { wait: Infinity })).release();
  const lock = locks.sticky(SHARED);
  return () => lock.use(() => {});
}

// The median in ns, with a pause of so many ms behind each.
async function middle(count, pause, act, then = () => {}) {
  const took = [];
  for (let n = 0; n < count; n++) {
    const begin = performance.now();
    await act();
    took.push(performance.now() - begin);
    await then();
    await sleep(pause);
  }
  took.sort((a, b) => a - b);
  return Math.round(took[count >> 1] * 1e6);
}

function memory() {
  globalThis.gc();
  // Pages that are free inside the heap do not go back: what is resident says nothing here.
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const orders = {
  go() {
    crew.forEach(contend);
    return 0;
  },
  turns: () => had.join(' '),
  pairs: (ms) => timed(free[side], ms),
  pings: (ms) => timed(() => client.ping(), ms),
  uses(ms) {
    const sticky = locks.sticky('bench:sticky');
    return timed(() => sticky.use(() => {}), ms);
  },
  sets: (ms) =>
    timed(async () => {
      await client.set('bench:set', 'owner', { NX: true, PX: 10_000 });
      await client.del('bench:set');
    }, ms),
  often(sticky) {
    const turn = shared(sticky);
    (async () => {
      while (true) {
        await turn();
        await sleep(2);
      }
    })();
    return 0;
  },
  shares: (sticky, count) => middle(count, 2, shared(sticky)),
  takes(count) {
    let hold;
    return middle(
      count,
      10,
      async () => {
        hold = await locks.acquire(SHARED, { wait: Infinity });
      },
      () => hold.release(),
    );
  },
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

if (ours) {
  await client.connect();
  locks = new Locks(client);
}
const crew = Array.from({ length: workers }, sides[side]);
await warmUp(crew[0], sides[side]());
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const [order, ...numbers] = line.split(' ');
  console.log(await orders[order](...numbers.map(Number)));
}
process.exit(0);

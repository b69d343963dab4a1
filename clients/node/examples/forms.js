import { Redis } from 'ioredis';
import { DeadlockError, Locks } from 'rlock-client';

const client = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', { lazyConnect: true });
const locks = new Locks(client);

// Without a function: acquire and release.
const hold = await locks.acquire('invoices', { wait: 5_000 });
try {
  hold.signal.addEventListener('abort', () => console.log('lost:', hold.lost.reason));
  await hold.renew(30_000);
} finally {
  await hold.release();
}

// Many may read, or one may write.
await locks.using('prices', { mode: 'read' }, () => console.log('reading'));
await locks.using('prices', { mode: 'write', wait: 1_000 }, () => console.log('writing'));

// At most four at a time; this one counts for two.
await locks.using('gpu', { limit: 4, permits: 2 }, () => console.log('two of four'));

// Several at once: all or none.
await locks.using(['account:7', 'account:9'], { wait: 1_000 }, () => console.log('both'));

// One after the other: a job, so that the server sees deadlocks between jobs.
const job = locks.job();
try {
  await job.using('orders', { wait: 5_000 }, () =>
    job.using('stock', { wait: 5_000 }, () => console.log('orders and stock')),
  );
} catch (error) {
  if (!(error instanceof DeadlockError)) throw error;
  console.log('another job waits for what this one holds: begin again');
}

// A wait that is given up.
const enough = new AbortController();
await locks.using('gate', async () => {
  const wait = locks.acquire('gate', { wait: Infinity, signal: enough.signal });
  enough.abort(new Error('no more patience'));
  await wait.catch((error) => console.log(error.message));
});

// A long job, which stops between two pieces when somebody waits.
const pages = ['one', 'two', 'three'];
const write = async (page) => console.log('written:', page);
await locks.using('index', async (signal, hold) => {
  for (const page of pages) {
    await write(page, { signal });
    if (hold.wanted) break; // somebody waits: the rest is for the next time
  }
});

// One that does not want to stop gives way, and goes on when it is its turn again.
await locks.using('index', async (signal, hold) => {
  for (const page of pages) {
    await write(page, { signal, token: hold.token });
    await hold.giveWay(); // at once, unless somebody waits
  }
});

// Call sites that take the same lock again and again: it stays here between its uses.
const tenant = locks.sticky('tenant:7'); // once

const handle = (request) =>
  tenant.use(async (use) => { // no message, if the lock is here already
    await write(request, { signal: use.signal });
  });

for (const request of ['a', 'b', 'c']) await handle(request);

// A plain lease: nothing renews it, and it outlives the connection.
const plain = await locks.acquire('cron', { watchdog: false, lease: 60_000 });
await plain.release();

await locks.close();

// The driver of the Node client: JSON lines in and out. Its argument is the library.
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, Cluster } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { LostError, Locks, NotAcquiredError } from 'rlock-client';
import { Cancelled, Thrown, answer } from './answers.js';
import { stickies } from './sticky.js';

const library = process.argv[2];
const client = library === 'redis' ? 'node' : 'node-ioredis';
const NEEDS = [
  'read_write', 'permits', 'many', 'job', 'again', 'acks', 'max', 'scope', 'cluster', 'notified', 'callback',
  'surrogates', 'tight', 'backend', 'patience', 'wanted', 'give_way', 'sticky', 'use_cancel',
];

// How often a server is asked whether it has the module by now is no option of the package.
const { AGAIN } = await import(new URL('backend.js', import.meta.resolve('rlock-client')));

const opened = new Map();
const holds = new Map();
const requests = new Map(); // by id: the AbortController of an acquisition
const later = [];

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** What a program may have set for its own commands, as narrow as it can be. */
const TIGHT = {
  redis: { commandOptions: { timeout: 200 }, commandsQueueMaxLength: 1, pingInterval: 100 },
  ioredis: { commandTimeout: 200, socketTimeout: 200, maxRetriesPerRequest: 0, enableOfflineQueue: false },
};

function connected({ host, port, cluster, user: username, password, tls, ca, tight }) {
  const authority = tls && readFileSync(ca);
  if (library === 'redis') {
    const secured = { ...(tls ? { tls: true, ca: authority } : {}), ...(tight ? { socketTimeout: 200 } : {}) };
    const socket = { host, port, ...secured };
    const defaults = { username, password, socket: secured, ...(tight ? TIGHT.redis : {}) };
    return cluster ? createCluster({ rootNodes: [{ socket }], defaults }) : createClient({ ...defaults, socket });
  }
  const options = { username, password, lazyConnect: true, ...(tight ? TIGHT.ioredis : {}) };
  if (tls) options.tls = { ca: authority };
  const nodes = [{ host, port }];
  return cluster ? new Cluster(nodes, { lazyConnect: true, redisOptions: options }) : new Redis({ host, port, ...options });
}

function locksOf({ locks }) {
  const found = opened.get(locks);
  if (!found) throw new Error(`no locks ${locks}`);
  return found;
}

function where(words) {
  const found = locksOf(words);
  if (words.job === undefined) return found.locks;
  if (!found.jobs.has(words.job)) found.jobs.set(words.job, found.locks.job());
  return found.jobs.get(words.job);
}

function options({ wait, acks_ms, ...words }, signal) {
  const { lease, watchdog, max, mode, limit, permits, acks } = words;
  const all = { lease, watchdog, max, mode, limit, permits, acks, acksTimeout: acks_ms, signal };
  if (wait !== undefined) all.wait = wait === -1 ? Infinity : wait;
  return all;
}

function cancellable({ id }) {
  const cancel = new AbortController();
  requests.set(id, cancel);
  return cancel.signal;
}

function holdOf({ hold }) {
  const found = holds.get(hold);
  if (!found) throw new Error(`no hold ${hold}`);
  return found;
}

const DO = {
  hello: () => ({ client, needs: NEEDS }),
  open(words) {
    const { timeout, backend, ask_again_ms, patience } = words;
    if (ask_again_ms) AGAIN.every = ask_again_ms;
    const locks = new Locks(connected(words), { timeout, backend, patience: patience === null ? Infinity : patience });
    opened.set(words.locks, { locks, jobs: new Map() });
  },
  backend: (words) => ({ backend: locksOf(words).locks.backend ?? null }),
  async acquire(words) {
    const hold = await where(words).acquire(words.keys ?? words.key, options(words, cancellable(words)));
    holds.set(words.hold, hold);
    const lost = () => say({ event: 'lost', hold: words.hold, reason: hold.lost.reason });
    if (hold.lost) lost();
    else hold.signal.addEventListener('abort', lost);
    return { token: hold.token, owner: hold.owner };
  },
  cancel: ({ acquire }) => requests.get(acquire)?.abort(new Cancelled('cancelled')),
  release: (words) => holdOf(words).release(),
  renew: (words) => holdOf(words).renew(words.lease),
  again: (words) => void holdOf(words).again(),
  state: (words) => ({ lost: holdOf(words).lost?.reason ?? null }),
  async wanted({ within, ...words }) {
    const hold = holdOf(words);
    if (within === undefined) return { wanted: hold.wanted };
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Cancelled('in vain')), within);
    const wanted = await hold.untilWanted({ signal: late.signal }).catch((error) => error);
    clearTimeout(timer);
    if (wanted instanceof Error && !(wanted instanceof Cancelled)) throw wanted;
    return { wanted: wanted === true };
  },
  async give_way({ wait, least, ...words }) {
    const hold = holdOf(words);
    const gave = await hold.giveWay({ wait, least });
    return { gave, token: hold.token, owner: hold.owner };
  },
  async scope(words) {
    let stopped = false;
    const body = async (signal) => {
      await sleep(words.body ?? 0, undefined, { signal }).catch(() => (stopped = true));
      signal.throwIfAborted();
      if (words.fail) throw new Error('the body failed');
      return 'done';
    };
    try {
      return { body: await where(words).using(words.keys ?? words.key, options(words, cancellable(words)), body) };
    } catch (error) {
      if (stopped && error instanceof LostError) return { body: 'stopped' };
      throw error;
    }
  },
  /** When the hold is lost the program's own callback does something. */
  callback(words) {
    const does = {
      release: () => holds.get(words.of).release(),
      renew: () => holds.get(words.of).renew(),
      acquire: () => DO.acquire({ ...words, hold: words.of }),
      close: () => DO.close(words),
      block: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, words.ms),
      throw() {},
    };
    const said = { event: 'callback', hold: words.hold };
    const onLost = () => {
      say({ ...said, begun: words.does });
      const end = does[words.does]();
      later.push(
        Promise.resolve(end).then(
          () => say({ ...said, end: 'ok' }),
          (error) => say({ ...said, end: answer(error).error, text: String(error) }),
        ),
      );
      if (words.does === 'throw') throw new Thrown('the callback failed');
    };
    holdOf(words).signal.addEventListener('abort', onLost);
  },
  async count({ key, file, wait, for: time, ...words }) {
    const { locks } = locksOf(words);
    const end = performance.now() + time;
    const add = async () => {
      const number = Number(await readFile(file, 'utf8').catch(() => '0'));
      await writeFile(file, String(number + 1));
    };
    let done = 0;
    while (performance.now() < end) {
      try {
        await (key === undefined ? used.of(words).use(add) : locks.using(key, options({ wait }), add));
        done += 1;
      } catch (error) {
        if (!(error instanceof NotAcquiredError)) throw error;
      }
    }
    return { done };
  },
  async close(words) {
    await locksOf(words).locks.close();
  },
};
const used = stickies((words) => locksOf(words).locks);
Object.assign(DO, used.DO);

async function run(words) {
  try {
    if (!DO[words.do]) throw new Error(`do not know how to ${words.do}`);
    say({ id: words.id, ok: (await DO[words.do](words)) ?? {} });
  } catch (error) {
    say({ id: words.id, ...answer(error) });
  }
}

process.on('uncaughtException', (error) => {
  if (!(error instanceof Thrown)) throw error;
});
for await (const line of createInterface({ input: process.stdin })) later.push(run(JSON.parse(line)));
used.end();
await Promise.all([...opened.values()].map(({ locks }) => locks.close()));
await Promise.all(later);
process.exitCode = 0;

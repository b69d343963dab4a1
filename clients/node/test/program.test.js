// The program's own code, wherever it runs and however it ends, and the session that goes on.
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { forEach } from './tools/libraries.js';
import { Proxy } from './tools/proxy.js';
import { Server } from './tools/server.js';
import { failure, lost, until } from './tools/until.js';

/** A key can be acquired at once, and nothing is left of any other on the server. */
async function goesOn(server, locks, ...keys) {
  for (const key of [...keys, 'new']) await (await locks.acquire(key)).release();
  await until(async () => (await server.say('DBSIZE')) === 0, 'nothing is left');
  for (const key of keys) assert.equal((await server.info(key)).waiters, 0);
}

/** So many microtasks later, or turns of the event loop. */
async function steps(kind, n) {
  for (let step = 0; step < n; step++) await (kind === 'microtask' ? null : turn());
}

const KINDS = ['microtask', 'turn'];

for (const kind of KINDS) {
  forEach(`a signal that is aborted at each ${kind} of acquire and using`, async (t, open) => {
    const server = await Server.start(t);
    const locks = open(server.port);
    const other = open(server.port);
    let had = 0;
    for (const options of [{}, { watchdog: false }, { mode: 'read' }, { acks: 1, acksTimeout: 5 }]) {
      for (const taken of [false, true]) {
        for (let n = 0; n < 14; n++) {
          const blocker = taken && (await other.acquire('jobs'));
          const abort = new AbortController();
          const reason = new Error('enough');
          const how = { ...options, wait: 20_000, signal: abort.signal };
          const scope = locks.using('scope', how, () => 'done').catch((error) => error);
          const wait = locks.acquire('jobs', how).catch((error) => error);
          const freed = blocker && blocker.release();
          await steps(kind, n);
          abort.abort(reason);
          const [hold, end] = await Promise.all([wait, scope, freed]);
          assert(end === 'done' || end === reason || end.code === 'NOREPLICAS', String(end));
          if (hold instanceof Error) assert(hold === reason || hold.code === 'NOREPLICAS', String(hold));
          else {
            had += 1;
            await hold.release();
          }
          await goesOn(server, locks, 'jobs', 'scope');
        }
      }
    }
    t.diagnostic(`${had} were had`);
  });

  forEach(`close at each ${kind} of acquire, using, renew and release`, async (t, open) => {
    const server = await Server.start(t);
    for (let n = 0; n < 12; n++) {
      const locks = open(server.port);
      const [renewed, released] = [await locks.acquire('renewed'), await locks.acquire('released', { watchdog: false })];
      const calls = [
        locks.acquire('a', { wait: 1000 }), locks.using('b', { wait: Infinity }, () => {}), renewed.renew(),
        released.release(), locks.acquire('c', { watchdog: false, lease: 60_000 }),
      ];
      const ended = Promise.allSettled(calls);
      await steps(kind, n);
      await locks.close();
      for (const { reason } of await ended) if (reason) assert.match(reason.name, /ConnectionError|LostError/);
      assert.equal(await server.say('DBSIZE'), 0);
    }
  });
}

forEach('release and close at each step of renew, and renew at each of release', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const locks = open(proxy.port);
  for (const cut of [false, true]) {
    for (const first of ['renew', 'release']) {
      for (let n = 0; n < 8; n++) {
        const hold = await locks.acquire('jobs', { watchdog: false });
        if (cut) proxy.cut('RLOCK.RENEW');
        const then = first === 'renew' ? 'release' : 'renew';
        const calls = [hold[first]().catch((error) => error)];
        await steps('microtask', n);
        calls.push(hold[then]().catch((error) => error));
        for (const error of await Promise.all(calls)) if (error) assert.equal(error.reason, 'released');
        proxy.cut(undefined);
        assert.equal(hold.lost, null, 'it was released, and not lost');
        await goesOn(server, locks, 'jobs');
      }
    }
  }
});

const DEEDS = {
  throws: () => {
    throw new Error('thrown by the program');
  },
  rejects: () => Promise.reject(new Error('rejected by the program')).catch(() => {}),
  acquires: (locks) => locks.acquire('deed').then((hold) => hold.release()),
  waits: (locks) => locks.acquire('taken', { wait: Infinity }).then((hold) => hold.release()),
  releases: (locks, others) => Promise.all(others.map((hold) => hold.release())),
  renews: (locks, others) => Promise.all(others.map((hold) => hold.renew())),
  'releases itself': (locks, others, hold) => failure(hold.release()),
  blocks: () => {
    for (const end = performance.now() + 60; performance.now() < end; );
  },
  closes: (locks) => locks.close(),
};

/** A short hold: on a busy machine it may be lost before it is given. Then it is asked for again. */
async function notLost(acquire) {
  for (;;) {
    const hold = await acquire().catch((error) => assert.equal(error.name, 'LostError'));
    if (hold && !hold.lost) return hold;
  }
}

for (const way of ['forced', 'cut', 'deadline', 'max']) {
  forEach(`what the program does when it is notified of a loss (${way})`, async (t, open) => {
    const server = await Server.start(t);
    const proxy = await Proxy.start(t, server.port);
    const thrown = [];
    const onthrow = (error) => thrown.push(error.message);
    process.prependListener('uncaughtException', onthrow);
    t.after(() => process.off('uncaughtException', onthrow));
    const own = process.listeners('uncaughtException').filter((one) => one !== onthrow);
    for (const one of own) process.off('uncaughtException', one);
    t.after(() => own.forEach((one) => process.on('uncaughtException', one)));
    for (const [name, deed] of Object.entries(DEEDS)) {
      const locks = open(proxy.port);
      const taken = await open(server.port).acquire('taken');
      const others = [await locks.acquire('other'), await locks.acquire('plain', { watchdog: false, lease: 60_000 })];
      const options = { deadline: { watchdog: false, lease: 400 }, max: { max: 400 } }[way];
      const hold = await notLost(() => locks.acquire('lost', options));
      const wait = locks.acquire('taken', { wait: 60_000 }).catch((error) => error);
      let outcome;
      const done = new Promise((resolve) => {
        hold.signal.addEventListener('abort', () => {
          resolve(); // also if the deed throws
          outcome = deed(locks, others, hold)?.catch((error) => assert.match(error.name, /ConnectionError|LostError/));
        });
      });
      if (way === 'forced') await server.say('RLOCK.FORCE', 'lost');
      if (way === 'cut') proxy.close();
      await done;
      if (name === 'throws') await until(() => thrown.pop() === 'thrown by the program', 'it was thrown');
      await taken.release();
      const second = await wait;
      assert.equal(second instanceof Error, name === 'closes', `${name}: ${second}`);
      if (name !== 'closes') await second.release();
      await outcome;
      for (const other of others) await other.release().catch((error) => assert.equal(error.name, 'LostError'));
      await goesOn(server, name === 'closes' ? open(server.port) : locks, 'deed', 'taken', 'other', 'plain', 'lost');
    }
    assert.deepEqual(thrown, []);
  });
}

forEach('the loss is notified when the session is done with it', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const holds = await Promise.all([...Array(20).keys()].map((n) => locks.acquire(`k${n}`)));
  const seen = [];
  for (const hold of holds) hold.signal.addEventListener('abort', () => seen.push(holds.filter(({ lost }) => lost).length));
  await server.say('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await until(() => seen.length === 20, 'all are notified');
  assert.deepEqual(seen, Array(20).fill(20), 'each listener sees all of them lost');
});

forEach('a wait that is given up frees the key of the job for the next one, once', async (t, open) => {
  const server = await Server.start(t);
  const job = open(server.port).job();
  await server.say('RLOCK.ACQUIRE', 'jobs', 'raw', 60_000);
  const abort = new AbortController();
  const first = failure(job.acquire('jobs', { wait: Infinity, signal: abort.signal }));
  await server.waiting('jobs', 1);
  abort.abort();
  const second = job.acquire('jobs', { wait: 60_000 });
  await first;
  assert.equal((await failure(job.acquire('jobs'))).name, 'HeldByJobError');
  await server.say('RLOCK.RELEASE', 'jobs', 'raw');
  await (await second).release();
});

forEach('a generator that is forgotten and collected releases by its finaliser', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  let released = 0;
  const registry = new FinalizationRegistry((hold) => hold.release().then(() => (released += 1), () => {}));
  const { setFlagsFromString } = await import('node:v8');
  const { runInNewContext } = await import('node:vm');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  async function* work(key) {
    const hold = await locks.acquire(key);
    registry.register(arguments, hold); // it goes with the generator
    yield hold.token;
    await hold.release();
  }
  for (let n = 0; n < 30; n++) await work(`k${n}`).next();
  await until(() => (collect(), released >= 25), 'they are collected');
  for (let n = 0; n < 30; n++) await server.say('RLOCK.FORCE', `k${n}`);
  await goesOn(server, locks, 'k0');
});

forEach('in a cluster that does not answer, a signal and close end it at once', async (t, open) => {
  const server = await Server.start(t, '--cluster-enabled', 'yes');
  server.signal('SIGSTOP');
  t.after(() => server.signal('SIGCONT'));
  const locks = open(server.port, { cluster: true, timeout: 60_000 });
  const abort = new AbortController();
  const began = performance.now();
  const [first, second] = [locks.acquire('a', { signal: abort.signal }), locks.acquire('b')].map(failure);
  setImmediate(() => abort.abort(new Error('enough')));
  assert.equal((await first).message, 'enough');
  locks.close();
  assert.equal((await second).message, 'these locks are closed');
  assert(performance.now() - began < 30_000);
});

forEach('a signal of the program that throws, whenever it is spoken to', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const thrown = new Error('a signal of their own');
  const fail = () => {
    throw thrown;
  };
  const uncaught = [];
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => uncaught.push(error));
  t.after(() => {
    process.removeAllListeners('uncaughtException');
    for (const listener of listeners) process.on('uncaughtException', listener);
  });
  for (const name of ['throwIfAborted', 'addEventListener']) {
    const job = locks.job();
    const { signal } = new AbortController();
    signal[name] = fail;
    assert.equal(await failure(job.acquire('jobs', { signal })), thrown);
    await (await job.acquire('jobs')).release();
  }
  // Where nobody asked for it, it goes where the language puts such errors.
  const { signal } = new AbortController();
  signal.removeEventListener = fail;
  const job = locks.job();
  await (await job.acquire('jobs', { signal })).release();
  await (await job.acquire('jobs')).release();
  await until(() => uncaught.length === 1, 'it was thrown');
  assert.deepEqual(uncaught, [thrown]);
  for (const signal of [{}, null, 5, { aborted: false, addEventListener() {}, throwIfAborted() {} }]) {
    assert((await failure(locks.acquire('jobs', { signal }))) instanceof TypeError);
  }
  await goesOn(server, locks, 'jobs');
});

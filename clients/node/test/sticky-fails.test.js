// What goes wrong with a sticky lock, and what is never stuck.
import assert from 'node:assert/strict';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { forEach } from './tools/libraries.js';
import { Proxy } from './tools/proxy.js';
import { Server } from './tools/server.js';
import { begins, begun, isSettled, nothing, ownerOf } from './tools/sticky.js';
import { failure, until } from './tools/until.js';
import { waiter } from './tools/way.js';

const LONG = { lease: 240_000 };

forEach('a token that gets no reply fails, and is nobody’s', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const sticky = open(proxy.port, { timeout: 5000 }).sticky('jobs', LONG);
  const token = await sticky.use((use) => use.token());
  const one = await begun(sticky);
  proxy.hold();
  assert.equal((await failure(one.use.token())).name, 'ConnectionError');
  assert.equal(one.use.lost, null);
  proxy.let();
  await one.end();
  const [owner, next] = await sticky.use(async (use) => [use.owner, await use.token()]);
  assert.notEqual(owner, one.use.owner); // the lock has gone back
  assert(next > token);
  // One that is refused; asked again it may be granted, and the lock goes back all the same.
  const two = await begun(sticky);
  await server.say('CONFIG', 'SET', 'min-replicas-to-write', '1');
  assert.equal((await failure(two.use.token())).code, 'NOREPLICAS');
  await server.say('CONFIG', 'SET', 'min-replicas-to-write', '0');
  assert((await two.use.token()) > next);
  await two.end();
  assert.notEqual(await ownerOf(sticky), two.use.owner);
});

forEach('with an older module each use is an acquisition', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  proxy.instead('WANTED', 'WANTET'); // which it does not know
  const sticky = open(proxy.port).sticky('jobs');
  const owners = new Set();
  for (let n = 0; n < 5; n++) {
    owners.add(await ownerOf(sticky));
    await server.free('jobs');
  }
  assert.equal(owners.size, 5);
  const one = await begun(sticky);
  const next = begins(sticky);
  const { wait } = await waiter(server, open(server.port));
  await one.end();
  await (await wait).release();
  await next.begun;
  await next.end();
});

forEach('so it is without the module', async (t, open) => {
  const server = await Server.plain(t);
  const sticky = open(server.port).sticky('jobs');
  let last = 0;
  for (let n = 0; n < 5; n++) {
    await sticky.use(async (use) => {
      const token = await use.token();
      assert(token > last);
      assert.equal(await use.token(), token);
      last = token;
    });
    await until(async () => (await server.say('EXISTS', 'jobs')) === 0, 'it is free');
  }
});

forEach('a wait ends by its signal, or when its time is over', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const sticky = locks.sticky('jobs');
  const other = await others.acquire('jobs');
  const abort = new AbortController();
  const reason = new Error('enough');
  const one = begins(sticky, { signal: abort.signal });
  const two = begins(sticky);
  await server.waiting('jobs', 1);
  abort.abort(reason);
  assert.equal(await failure(one.done), reason);
  assert.equal(await failure(sticky.use({ signal: abort.signal }, nothing)), reason);
  await server.waiting('jobs', 1);
  await other.release();
  await two.begun;
  const [short, none] = [locks.sticky('jobs', { wait: 20 }), locks.sticky('jobs', { wait: 0 })];
  for (const late of [short, none]) {
    const error = await failure(late.use(nothing));
    assert.deepEqual([error.name, error.key, error.heldBy], ['NotAcquiredError', 'jobs', two.use?.owner ?? (await two.begun).owner]);
  }
  await server.waiting('jobs', 0); // the last one that leaves takes the request along
  await two.end();
  await sticky.close();
  await none.use(async () => { // it does not wait for others, but for the server
    const error = await failure(none.use(nothing)); // which is a use within a use
    assert.equal(error.name, 'NotAcquiredError');
  });
});

forEach('a signal that is aborted at any time', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const sticky = locks.sticky('jobs');
  const reason = new Error('enough');
  for (const step of [() => null, turn]) {
    for (let n = 0; n < 14; n++) {
      const blocker = n % 2 && (await others.acquire('jobs', { wait: Infinity }));
      const abort = new AbortController();
      const uses = Array.from({ length: 5 }, (_, i) => sticky.use(i % 2 ? { signal: abort.signal } : {}, async (use) => {
        if (i > 2) await use.token();
        return 'done';
      }).catch((error) => error));
      const freed = blocker && blocker.release();
      for (let i = 0; i < n; i++) await step();
      abort.abort(reason);
      for (const end of await Promise.all(uses)) assert(end === 'done' || end === reason, String(end));
      await freed;
    }
  }
  await sticky.close();
  await until(async () => (await server.say('DBSIZE')) === 0, 'nothing is left');
});

forEach('it is closed, idle or in use', async (t, open) => {
  const server = await Server.start(t);
  const locks = open(server.port);
  const closed = { name: 'ConnectionError', message: 'the sticky lock of jobs is closed' };
  let sticky = locks.sticky('jobs');
  await sticky.close();
  await assert.rejects(sticky.use(nothing), closed);
  sticky = locks.sticky('jobs');
  const one = await begun(sticky);
  const wait = begins(sticky);
  await Promise.all([sticky.close(), sticky.close()]);
  await assert.rejects(wait.done, closed);
  assert.equal(one.use.lost, null);
  await one.end();
  await server.free('jobs');
  sticky = locks.sticky('jobs');
  await sticky.use(nothing);
  const isFree = async () => assert.equal((await server.info('jobs')).mode, 'free');
  await Promise.all([sticky.close(), sticky.close(), sticky[Symbol.asyncDispose]()].map((closed) => closed.then(isFree)));
  sticky = locks.sticky('jobs');
  const last = await begun(sticky);
  const { signal } = last.use;
  const waits = begins(sticky);
  await locks.close();
  assert.equal((await failure(waits.done)).message, 'these locks are closed');
  assert.equal(signal.reason.reason, 'closed');
  assert.equal((await failure(last.end())).reason, 'closed');
  assert.equal((await failure(sticky.use(nothing))).message, 'these locks are closed');
  await sticky.close();
  assert.equal(await server.say('DBSIZE'), 0);
});

forEach('over connections that break, and a server that does not answer', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const sticky = open(proxy.port).sticky('jobs', { lease: 6000 });
  for (let n = 0; n < 3; n++) {
    const owner = await ownerOf(sticky);
    proxy.close();
    await until(async () => (await ownerOf(sticky).catch(() => owner)) !== owner, 'it is acquired anew');
    const one = await begun(sticky);
    proxy.close();
    await until(() => one.use.lost, 'the loss');
    assert.equal((await failure(one.end())).reason, 'connection');
  }
  const one = await begun(sticky);
  proxy.hold();
  await sleep(3100); // more than half of the lease
  const end = failure(one.end());
  assert.equal((await end).reason, 'connection');
  proxy.let();
  await sticky.use(nothing);
  await server.kill();
  const away = open(server.port, { timeout: 200 }).sticky('jobs', { wait: 1 });
  assert.equal((await failure(away.use(nothing))).name, 'ConnectionError');
  await server.run();
  await sticky.use(nothing);
});

forEach('an event loop that was blocked asks the server first', async (t, open) => {
  const server = await Server.start(t);
  const proxy = await Proxy.start(t, server.port);
  const sticky = open(proxy.port).sticky('jobs', { lease: 6000 });
  const block = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3100); // more than half of the lease
  const pings = () => proxy.said.split('PING').length;
  const one = await begun(sticky);
  const before = pings();
  block();
  await one.end();
  assert(pings() > before);
  const two = await begun(sticky);
  await server.say('RLOCK.FORCE', 'jobs');
  block();
  assert.equal((await failure(two.end())).reason, 'forced');
  // And one that is used next.
  await sticky.use(nothing);
  const owner = await ownerOf(sticky);
  const forced = server.say('RLOCK.FORCE', 'jobs');
  await turn();
  block();
  assert.notEqual(await ownerOf(sticky), owner);
  await forced;
});

forEach('a lease that is shorter than an answer', async (t, open) => {
  const server = await Server.start(t);
  const sticky = open(server.port).sticky('jobs', { lease: 1 });
  for (let n = 0; n < 20; n++) {
    const error = await sticky.use(nothing).catch((error) => error);
    if (error) assert.equal(error.name, 'LostError');
  }
});

forEach('everything at any time', async (t, open) => {
  const server = await Server.start(t);
  const [locks, others] = [open(server.port), open(server.port)];
  const all = [locks.sticky('jobs'), locks.sticky('jobs'), locks.sticky('other', { idle: 0 })];
  const inside = [0, 0, 0];
  const reason = new Error('enough');
  const some = () => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(reason), Math.random() * 5);
    return { signal: abort.signal };
  };
  const mayEnd = (error) => assert(error === reason || error.name === 'LostError', String(error));
  await Promise.all(Array.from({ length: 300 }, async (_, i) => {
    const y = i % all.length;
    const body = async (use) => {
      assert.equal(++inside[y], 1);
      if (i % 2) await turn();
      if (i % 5 === 0) await use.token().catch(mayEnd);
      if (i % 7 === 0) assert.equal(use.signal.aborted, use.lost !== null);
      inside[y] -= 1;
      if (i % 3 === 0) throw reason;
    };
    for (let n = 0; n < 10; n++) {
      const what = Math.floor(Math.random() * 8);
      if (what === 0) await server.say('RLOCK.FORCE', 'jobs');
      else if (what === 1) await others.using('jobs', { ...some(), wait: Infinity }, nothing).catch(mayEnd);
      else await all[y].use(what < 4 ? some() : {}, body).catch(mayEnd);
    }
  }));
  for (const sticky of all) await sticky.use(nothing);
  const uses = all.flatMap((sticky) => Array.from({ length: 20 }, () => sticky.use(turn).catch((error) => error)));
  await locks.close();
  for (const end of await Promise.all(uses)) if (end) assert.match(end.name, /LostError|ConnectionError/);
  await until(async () => (await server.say('DBSIZE')) === 0, 'nothing is left');
  assert.equal(await isSettled(locks.close()), true);
});

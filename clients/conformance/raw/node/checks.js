// The eight pains, by whichever client library: a line for each, and whether it is gone.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const [PORT, LOSING] = process.argv.slice(2).map(Number);
const LEASE = 60_000;

let failed = 0;
let library, admin;

function line(number, what, good, seen) {
  failed += !good;
  console.log(good ? 'ok' : 'not ok', number, `${what}: ${seen}`);
}

const owner = () => `check:${randomUUID()}`;
const take = (key, holder = 'other') => admin.call('RLOCK.ACQUIRE', key, holder, LEASE);
const give = (key, holder = 'other') => admin.call('RLOCK.RELEASE', key, holder);
const fields = (map) => (Array.isArray(map) ? Object.fromEntries(map.flatMap((v, i) => (i % 2 ? [] : [[v, map[i + 1]]]))) : map);

async function info(key) {
  const lock = fields(await admin.call('RLOCK.INFO', key));
  lock.holders = (lock.holders ?? []).map(fields);
  return lock;
}

async function queue(key) {
  return (await admin.call('RLOCK.WAITERS', key)).map(fields);
}

const place = async (key, mine) => (await queue(key)).findIndex((waiter) => waiter.owner === mine);

async function until(condition, seconds = 20) {
  const end = Date.now() + seconds * 1000;
  let good;
  while (!(good = await condition()) && Date.now() < end) await sleep(10);
  return good;
}

const waiting = (key, many) => until(async () => (await queue(key)).length === many);

/** What became of it, within 20 s. */
async function outcome(promise) {
  const late = new AbortController();
  const patience = sleep(20_000, 'nothing', { signal: late.signal }).catch(() => {});
  const end = await Promise.race([promise, patience]).catch((error) => error);
  late.abort();
  return end;
}

async function withSession(work) {
  const session = await library.open(PORT);
  try {
    return await work(session);
  } finally {
    session.close();
  }
}

async function connections() {
  return Number(/connected_clients:(\d+)/.exec(await admin.call('INFO', 'clients'))[1]);
}

async function manyWaits(number, session) {
  const keys = [...Array(200).keys()].map((i) => `many:${i}`);
  for (const key of keys) await take(key);
  const before = await connections();
  const asked = keys.map((key) => ({ key, mine: owner() }));
  for (const wait of asked) wait.end = session.acquire(wait.key, wait.mine, LEASE, { wait: 60_000 });
  for (const key of keys) await waiting(key, 1);
  const beside = await session.call('SET', 'beside', '1');
  const grown = (await connections()) - before;
  for (const key of keys) await give(key);
  const tokens = new Set(await Promise.all(asked.map((wait) => outcome(wait.end))));
  let freed = 0;
  for (const { key, mine } of asked) freed += (await session.call('RLOCK.RELEASE', key, mine)) === 0;
  line(
    number, '200 waits on one connection, beside other commands',
    beside === 'OK' && tokens.size === 200 && freed === 200 && grown === 0,
    `SET ${beside}, ${tokens.size} granted, ${freed} released, ${grown} more connections`,
  );
}

async function retried(number, session) {
  const [key, mine, behind] = ['again', owner(), owner()];
  await take(key);
  const first = session.acquire(key, mine, LEASE, { wait: 30_000 });
  await waiting(key, 1);
  const last = session.acquire(key, behind, LEASE, { wait: 30_000 });
  await waiting(key, 2);
  const again = session.acquire(key, mine, LEASE, { wait: 30_000 });
  const older = await outcome(first);
  const at = await place(key, mine);
  await give(key);
  const token = await outcome(again);
  const { holds } = (await info(key)).holders[0];
  await give(key, mine);
  const after = await outcome(last);
  line(
    number, 'a queued request that is retried keeps its place',
    /SUPERSEDED/.test(older.message) && at === 0 && token > 0 && holds === 1 && after > token,
    `the older: ${older.message.slice(0, 40)}; place ${at}, token ${token}, ${holds} hold, the one behind ${after}`,
  );
}

/** A BLOCK whose connection breaks: some libraries send it again, some leave that to the program. */
async function blockedWhileItBreaks(number) {
  const [key, mine] = ['block', owner()];
  await take(key);
  const client = await library.plain(PORT);
  const ask = () => client.call('RLOCK.ACQUIRE', key, mine, LEASE, 'BLOCK', 30_000, 'ONCE');
  let by = 'the library';
  const blocked = ask().catch(() => ((by = 'the program'), ask()));
  await waiting(key, 1);
  const id = (await queue(key))[0]['client-id'];
  await admin.call('CLIENT', 'KILL', 'ID', id);
  const again = await until(async () => (await queue(key)).some((waiter) => waiter['client-id'] !== id));
  await give(key);
  const token = await outcome(blocked);
  const { holds } = (await info(key)).holders[0];
  client.close();
  line(
    number, 'a BLOCK whose connection breaks is sent again with ONCE and ends well',
    again && token > 0 && holds === 1,
    `sent again by ${by}, token ${token}, ${holds} hold`,
  );
}

async function lostReply(number) {
  const mine = owner();
  const client = await library.plain(LOSING);
  const ask = () => client.call('RLOCK.ACQUIRE', 'cut:once', mine, LEASE, 'ONCE');
  let by = 'the library';
  const token = await outcome(ask().catch(() => ((by = 'the program'), ask())));
  const holder = (await info('cut:once')).holders[0];
  client.close();
  line(
    number, 'the reply is lost, the request that is retried has the token',
    holder.token === token && holder.holds === 1,
    `retried by ${by}, token ${token}, ${holder.holds} hold`,
  );
}

async function givesUp(number, session) {
  const mine = owner();
  await take('up');
  const wait = session.acquire('up', mine, LEASE, { wait: 60_000 });
  await waiting('up', 1);
  const cancelled = await session.call('RLOCK.CANCEL', 'up', mine);
  const end = await outcome(wait);
  const left = (await queue('up')).length;
  const blocked = await library.plain(PORT);
  blocked.call('RLOCK.ACQUIRE', 'up', owner(), LEASE, 'BLOCK', 0).catch(() => {});
  const second = await library.open(PORT);
  second.acquire('up', owner(), LEASE, { wait: 60_000 }).catch(() => {});
  const both = await waiting('up', 2);
  blocked.close();
  second.close();
  const gone = await waiting('up', 0);
  await give('up');
  const { mode } = await info('up');
  line(
    number, 'who gives up leaves no waiter: CANCEL, or a closed connection',
    cancelled === 1 && end === null && left === 0 && both && gone && mode === 'free',
    `CANCEL ${cancelled}, ${end}, ${left} left; 2 more waited: ${both}, closed, gone: ${gone}; then ${mode}`,
  );
}

async function aborted(number, session) {
  await take('cancel');
  const abort = new AbortController();
  const wait = session.acquire('cancel', owner(), LEASE, { signal: abort.signal });
  const there = await waiting('cancel', 1);
  abort.abort();
  const end = await outcome(wait);
  const left = (await queue('cancel')).length;
  const pong = await session.call('PING');
  line(
    number, 'an AbortSignal ends the wait in the server',
    there && end === null && left === 0 && pong === 'PONG',
    `waited: ${there}, ${end}, ${left} left; the connection goes on: ${pong}`,
  );
}

async function forceOne(number, session) {
  const keys = ['force:1', 'force:2', 'force:3'];
  const id = await session.call('CLIENT', 'ID');
  const notified = [];
  for (const key of keys) {
    const lost = (reason) => notified.push(`${key} ${reason}`);
    await session.acquire(key, owner(), LEASE, { words: ['WATCHDOG'], lost });
  }
  await admin.call('RLOCK.FORCE', 'force:2');
  await until(() => notified.length);
  await sleep(500); // a connection that is to be closed would be by now
  const watched = [];
  for (const key of ['force:1', 'force:3']) watched.push((await info(key)).holders[0]?.watchdog);
  const same = (await session.call('CLIENT', 'ID')) === id;
  line(
    number, 'FORCE of one of three watchdog holds leaves two',
    notified.join() === 'force:2 forced' && watched.every((by) => by === id) && same,
    `notified ${notified}, still held by ${watched}, same connection: ${same}`,
  );
}

async function lossIsNotified(number, session) {
  const notified = [];
  const lost = (reason) => notified.push(reason);
  const token = await session.acquire('loss:1', owner(), LEASE, { lost });
  await session.acquire('loss:2', owner(), LEASE, { words: ['WATCHDOG'], lost });
  await admin.call('DEL', 'loss:1');
  await until(() => notified.length);
  await admin.call('CLIENT', 'KILL', 'ID', await session.call('CLIENT', 'ID'));
  await until(() => notified.length > 1);
  const free = await until(async () => (await info('loss:2')).mode === 'free');
  const refused = await outcome(session.call('PING').catch(() => 'refused'));
  const after = await library.open(PORT);
  const newer = await after.acquire('loss:1', owner(), LEASE);
  after.close();
  line(
    number, 'a loss is notified, a broken connection too, and a new session begins from nothing',
    notified.join() === 'deleted,connection' && free && refused === 'refused' && newer > token,
    `${notified}; its watchdog hold ended: ${free}; from then on ${refused}; a new session has ${newer}`,
  );
}

async function oneOwner(number, session) {
  const [ann, bob] = [owner(), owner()];
  const first = await session.acquire('one:1', ann, LEASE);
  await session.acquire('one:2', bob, LEASE);
  const second = await session.acquire('one:1', ann, LEASE);
  session.acquire('one:2', ann, LEASE, { wait: 10_000 }).catch(() => {});
  await waiting('one:2', 1);
  const refused = await outcome(session.acquire('one:1', bob, LEASE, { wait: 10_000 }));
  line(
    number, 'one owner for each piece of work: no HELD, and DEADLOCK is raised',
    first === second && /^DEADLOCK/.test(refused.message),
    `the same token: ${first === second}; ${String(refused.message ?? refused).slice(0, 60)}`,
  );
}

const CHECKS = [
  [1, manyWaits], [2, retried], [2, blockedWhileItBreaks], [3, lostReply], [4, givesUp],
  [5, aborted], [6, forceOne], [7, lossIsNotified], [8, oneOwner],
];

export async function check(it) {
  library = it;
  admin = await library.plain(PORT);
  for (const [number, one] of CHECKS) {
    try {
      await withSession((session) => one(number, session));
    } catch (error) {
      line(number, one.name, false, error.stack);
    }
  }
  admin.close();
  process.exit(failed ? 1 : 0);
}

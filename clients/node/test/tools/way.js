// A hold that gives way to whoever waits for `jobs`.
import assert from 'node:assert/strict';
import { failure, until } from './until.js';

export const AT_ONCE = { least: 0 };

/** Whoever waits for `jobs`, behind so many. */
export async function waiter(server, locks, how = {}, many = 1) {
  const wait = locks.acquire('jobs', { wait: Infinity, ...how });
  wait.catch(() => {});
  await server.waiting('jobs', many);
  return { wait };
}

export const isWanted = (hold) => until(() => hold.wanted, 'it is wanted', 60_000);

/** What was said through the proxy of locks, from a number of pieces on. */
export const said = (proxy, from = 0) => [...proxy.pieces.slice(from).join('').matchAll(/RLOCK\.(?!HEARTBEAT)\w+/g)].map(String);

export const holders = async (server, key = 'jobs') => (await server.info(key)).holders;
export const tokenAt = async (server, key) => (await holders(server, key))[0].token;

/** It gives way to this waiter, who has the lock then, and it waits behind. */
export async function begin(server, hold, { wait }, options = {}) {
  await isWanted(hold);
  const gives = hold.giveWay({ ...AT_ONCE, ...options });
  gives.catch(() => {});
  const between = await wait;
  await server.waiting('jobs', 1);
  return { gives, between };
}

/** It has failed: the hold is over, and nothing of it is left. */
export async function isOver(server, hold, between, reason = 'released') {
  await server.waiting('jobs', 0);
  assert.equal(hold.lost?.reason, reason);
  assert.equal(hold.signal.aborted, true);
  assert.equal(hold.signal.reason, hold.lost);
  assert.equal(hold.wanted, false);
  for (const use of [hold.renew(), hold.giveWay(), hold.giveWay(AT_ONCE)]) assert.equal(await failure(use), hold.lost);
  assert.throws(() => hold.again(), hold.lost);
  await hold.release();
  if (!between) return;
  assert.deepEqual((await holders(server)).map(({ token }) => token), [between.token]);
  assert.equal(between.lost, null);
  await between.release();
  await server.free('jobs');
}

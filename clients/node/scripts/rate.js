// How much a use of a sticky lock costs beside a lock by SET and DEL with the same library.
//   npm run rate [-- seconds]
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { Locks } from 'rlock-client';
import { Server } from '../test/tools/server.js';

const SECONDS = Number(process.argv[2] ?? 2);

/** Microseconds each. */
async function rate(act) {
  for (let n = 0; n < 1000; n++) await act();
  const began = performance.now();
  let done = 0;
  while (performance.now() < began + SECONDS * 1000) {
    for (let n = 0; n < 100; n++) await act();
    done += 100;
  }
  return ((performance.now() - began) * 1000) / done;
}

/** @param {string} name @param {object} client @param {() => Promise<unknown>} pair */
async function measure(name, client, pair) {
  const locks = new Locks(client);
  const sticky = locks.sticky('jobs');
  const use = await rate(() => sticky.use(() => {}));
  const token = await rate(() => sticky.use((it) => it.token()));
  const both = await rate(pair);
  const words = [`a use ${use.toFixed(2)} us`, `with a token ${token.toFixed(1)} us`, `SET and DEL ${both.toFixed(1)} us`];
  console.log(`${name}: ${words.join(', ')}: ${Math.round(both / use)} times`);
  await locks.close();
}

const after = [];
const server = await Server.start({ after: (act) => after.push(act) });
const at = { port: server.port, host: '127.0.0.1' };
const one = await createClient({ socket: at }).connect();
await measure('node-redis', one, async () => {
  await one.set('other', 'owner', { NX: true, PX: 10_000 });
  await one.del('other');
});
one.destroy();
const two = new Redis(at);
await measure('ioredis', two, async () => {
  await two.set('other', 'owner', 'PX', 10_000, 'NX');
  await two.del('other');
});
two.disconnect();
for (const act of after) await act();
process.exit();

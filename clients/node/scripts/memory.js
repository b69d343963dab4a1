// What a hold and a wait cost in memory: so many of each on one connection.
//   npm run memory [-- how many]
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { Locks } from 'rlock-client';
import { Server } from '../test/tools/server.js';

const MANY = Number(process.argv[2] ?? 10_000);
const CLIENTS = {
  'node-redis': (port) => createClient({ socket: { port, host: '127.0.0.1' } }),
  ioredis: (port) => new Redis({ port, host: '127.0.0.1', lazyConnect: true }),
};

/** Bytes in use, once what is of no use is gone. */
async function used() {
  for (let i = 0; i < 5; i++) {
    globalThis.gc?.();
    await new Promise((done) => setTimeout(done, 20));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { bytes: heapUsed + external, rss };
}

const each = (before, after) => `${Math.round((after.bytes - before.bytes) / MANY)} bytes each`;
const seconds = (began) => `${((performance.now() - began) / 1000).toFixed(1)} s`;

async function measure(name, locks, server) {
  await locks.using('warm', () => {});
  const connections = await clients(server);
  const start = await used();
  let began = performance.now();
  const names = [...Array(MANY).keys()];
  const holds = await Promise.all(names.map((n) => locks.acquire(`held:${n}`, { lease: 30_000 })));
  const held = await used();
  console.log(`${name}: ${MANY} holds, ${each(start, held)}, in ${seconds(began)}`);

  began = performance.now();
  const waits = names.map((n) => locks.acquire(`held:${n}`, { wait: 600_000, lease: 30_000 }));
  await server.waiting(`held:${MANY - 1}`, 1);
  const waiting = await used();
  console.log(`${name}: ${MANY} waits, ${each(held, waiting)}, in ${seconds(began)}`);
  console.log(`${name}: ${(await clients(server)) - connections} more connections, ${Math.round(waiting.rss / 2 ** 20)} MB in all`);

  began = performance.now();
  await Promise.all(holds.map((hold) => hold.release()));
  const granted = await Promise.all(waits);
  await Promise.all(granted.map((hold) => hold.release()));
  holds.length = waits.length = granted.length = 0;
  const end = await used();
  console.log(`${name}: handed over and released in ${seconds(began)}, ${Math.round((end.bytes - start.bytes) / 1024)} KB left`);
}

async function clients(server) {
  return Number(/connected_clients:(\d+)/.exec(await server.say('INFO', 'clients'))[1]);
}

const endings = [];
const server = await Server.start({ after: (end) => endings.push(end) });
for (const [name, client] of Object.entries(CLIENTS)) {
  const locks = new Locks(client(server.port));
  await measure(name, locks, server);
  await locks.close();
}
for (const end of endings) await end();

// The program's client may have any limits: the session has those of its leases.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { forEach } from './tools/libraries.js';
import { Server } from './tools/server.js';

const LIMITS = {
  'command time-out': [{ commandOptions: { timeout: 200 } }, { commandTimeout: 200 }],
  'socket time-out': [{ socket: { socketTimeout: 200 } }, { socketTimeout: 200 }],
  'connect time-out': [{ socket: { connectTimeout: 1 } }, { connectTimeout: 1 }],
  'a PING of its own': [{ pingInterval: 100 }, { keepAlive: 100 }],
  'a short queue': [{ commandsQueueMaxLength: 1 }, { maxRetriesPerRequest: 0 }],
  'no queue while it is away': [{ disableOfflineQueue: true }, { enableOfflineQueue: false }],
  'a queue that is sent again': [{}, { autoResendUnfulfilledCommands: true, autoResubscribe: true }],
  'no connection again': [{ socket: { reconnectStrategy: false } }, { retryStrategy: null }],
  'a connection again': [{ socket: { reconnectStrategy: 1 } }, { retryStrategy: () => 1, reconnectOnError: () => 2 }],
  'its own way of replies': [{ commandOptions: { typeMapping: { 58: String } } }, { stringNumbers: true, replyMapping: 'resp3' }],
  'the second protocol': [{ RESP: 2 }, { protocol: 2 }],
  'pipelines and caches': [{ RESP: 3, clientSideCache: { maxEntries: 1 } }, { enableAutoPipelining: true, keyPrefix: 'p:' }],
  'readers only': [{ readonly: true }, { readOnly: true, enableReadyCheck: false }],
  'another database': [{ database: 3 }, { db: 3 }],
};

for (const [name, [redis, ioredis]] of Object.entries(LIMITS)) {
  forEach(`a server that stops for 700 ms, and a client with ${name}`, async (t, open) => {
    const server = await Server.start(t);
    const locks = open(server.port, { client: { 'node-redis': redis, ioredis } });
    const hold = await locks.acquire('jobs', { lease: 30_000 });
    const plain = await locks.acquire('plain', { lease: 30_000, watchdog: false });
    const [one, ...waits] = [...Array(20).keys()].map(() => locks.acquire('queue', { wait: 30_000, lease: 30_000 }));
    const first = await one;
    server.signal('SIGSTOP');
    const renewed = hold.renew(30_000);
    await sleep(700);
    server.signal('SIGCONT');
    await renewed;
    await plain.renew(30_000);
    await first.release();
    for (const wait of waits) await (await wait).release();
    assert.deepEqual([hold.lost, plain.lost], [null, null]);
    await Promise.all([hold.release(), plain.release()]);
  });
}

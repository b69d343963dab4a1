// Every test runs with each library.
import { test } from 'node:test';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { Locks } from 'rlock-client';

/** What no test may leave behind, and no test expects. */
export const unhandled = [];
process.on('unhandledRejection', (error) => unhandled.push(error));

const LIBRARIES = {
  'node-redis': (port, cluster, options) =>
    cluster
      ? createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }], defaults: options })
      : createClient({ ...options, socket: { port, host: '127.0.0.1', ...options.socket } }),
  ioredis: (port, cluster, options) =>
    cluster
      ? new Cluster([{ port, host: '127.0.0.1' }], { lazyConnect: true, redisOptions: options })
      : new Redis({ port, host: '127.0.0.1', lazyConnect: true, ...options }),
};

/**
 * `open` makes Locks over a client, whose options may be given by the name of its library.
 * @param {string} name
 * @param {(t: import('node:test').TestContext, open: (port: number, options?: object) => Locks, library: string) => Promise<void>} body
 */
export function forEach(name, body) {
  for (const [library, client] of Object.entries(LIBRARIES)) {
    test(`${name} (${library})`, { timeout: 240_000 }, async (t) => {
      const opened = [];
      // What a test that failed has left behind is not the next one's.
      t.after(() => Promise.all(opened.map((locks) => locks.close())).then(() => void unhandled.splice(0)));
      await body(t, (port, { cluster = false, client: own = {}, ...options } = {}) => {
        const locks = new Locks(client(port, cluster, own[library] ?? {}), options);
        opened.push(locks);
        return locks;
      }, library);
      const [first] = unhandled.splice(0);
      if (first) throw new Error('unhandled rejection', { cause: first });
    });
  }
}

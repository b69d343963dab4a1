// One face for both client libraries: a connection of the session's own, made with the
// options of the program's client. Neither library is imported: the client brings it.

/**
 * @typedef {{host: string, port: number}} Address
 *
 * @typedef {object} Connection  a connection that does not connect again by itself
 * @property {() => Promise<unknown>} ready  connects
 * @property {boolean} named  by the program
 * @property {(channel: string, sharded: boolean, onmessage: (message: string) => void) => Promise<unknown>} subscribe
 * @property {(channel: string, sharded: boolean, onmessage: (message: string) => void) => Promise<unknown>} unsubscribe
 * @property {(words: (string | number)[]) => Promise<unknown>} call
 * @property {() => void} destroy  at once; what waits for a reply is rejected
 * @property {(keep: boolean) => void} keep  whether it keeps the process alive
 *
 * @typedef {object} Events
 * @property {(why?: Error) => void} closed  the connection is closed; may be called more than once
 * @property {() => void} moved  a sharded subscription was ended by the server
 *
 * @typedef {object} Library
 * @property {(address: Address | undefined, timeout: number, events: Events) => Connection} connection
 *   to the address, or where the client's own options lead
 * @property {(timeout: number) => Promise<Address[]>} [seeds]  of a cluster: nodes to begin with; before any connection
 * @property {(address: Address) => Address | undefined} [mapped]  where a node is to be reached, if elsewhere
 */
import { ioredis } from './ioredis.js';
import { nodeRedis } from './node-redis.js';

/** @param {any} client @returns {Library} */
export function libraryOf(client) {
  if (typeof client?.duplicate === 'function') {
    // ioredis has call() and node-redis has not; both have sendCommand().
    const library = typeof client.call === 'function' ? ioredis(client) : nodeRedis(client);
    if (library) return library;
  }
  throw new TypeError('Locks takes a client of node-redis (createClient, createCluster) or ioredis (Redis, Cluster)');
}

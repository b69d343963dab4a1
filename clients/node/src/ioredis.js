import { mapping } from './mapping.js';

/** @import { Address, Connection, Events, Library } from './libraries.js' */

/** What would change or hold up a session's connection is taken out of the program's options. */
const OVERRIDES = {
  protocol: 3,
  replyMapping: 'legacy',
  lazyConnect: true,
  disconnectTimeout: 0, // a timer that would keep the process alive
  retryStrategy: null,
  sentinelRetryStrategy: null,
  reconnectOnError: null,
  enableReadyCheck: false, // it waits in its own way while a server loads
  enableOfflineQueue: false, // nothing may be kept for another connection
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  commandTimeout: undefined,
  socketTimeout: undefined,
  stringNumbers: false,
  keyPrefix: '', // it would change the channel's name
  monitor: false,
  readOnly: false,
  scripts: undefined,
  himportFieldsets: undefined,
};

/** @param {any} client @returns {Library | undefined} */
export function ioredis(client) {
  if (client.isCluster) return cluster(client);
  if (!client.options) return undefined;
  checkVersion(client);
  return {
    connection: (address, timeout, events) => connection(client, address, timeout, events),
  };
}

/** @param {any} client of one server */
function checkVersion(client) {
  if (!('protocol' in client.options)) {
    throw new TypeError('Locks needs ioredis 6 or newer: this client has no RESP3');
  }
}

/** @param {any} client @param {Address | undefined} address @param {number} timeout @param {Events} events @returns {Connection} */
function connection(client, address, timeout, events) {
  const own = client.duplicate({ ...OVERRIDES, ...address, connectTimeout: timeout });
  /** @type {Error | undefined} */
  let why;
  own.on('error', (/** @type {Error} */ error) => (why = error)); // close follows
  own.on('close', () => events.closed(why));
  own.on('end', () => events.closed(why));
  own.on('moved', events.moved);
  /** @type {Map<string, (message: string) => void>} */
  const deliver = new Map();
  for (const kind of ['message', 'smessage']) {
    own.on(kind, (/** @type {string} */ channel, /** @type {string} */ message) => deliver.get(channel)?.(message));
  }
  /** What is said in one turn of the event loop goes out in one write. */
  const gather = () => {
    const { stream } = own;
    if (!stream || stream.writableCorked) return;
    stream.cork();
    process.nextTick(() => stream.uncork());
  };
  return {
    // connect() says no more than that it was closed.
    ready: () => own.connect().catch((/** @type {Error} */ error) => Promise.reject(why ?? error)),
    named: Boolean(client.options.connectionName),
    subscribe(channel, sharded, onmessage) {
      deliver.set(channel, onmessage);
      return sharded ? own.ssubscribe(channel) : own.subscribe(channel);
    },
    unsubscribe(channel, sharded) {
      deliver.delete(channel);
      return sharded ? own.sunsubscribe(channel) : own.unsubscribe(channel);
    },
    call(words) {
      gather();
      return own.call(...words.map(String));
    },
    destroy() {
      own.disconnect();
      own.stream?.destroy(); // disconnect waits for the other side to close too
    },
    keep: (keep) => (keep ? own.stream?.ref() : own.stream?.unref()),
  };
}

/** @param {any} client @returns {Library} */
function cluster(client) {
  const seeds = client.startupNodes.map(address);
  /** @type {any} a client of one node, for its options; it never connects */
  const template = client.duplicate([], { lazyConnect: true }).connectionPool.findOrCreate({ ...seeds[0] });
  checkVersion(template);
  return {
    connection: (address, timeout, events) => connection(template, address, timeout, events),
    mapped: mapping(client.options.natMap),
    seeds: async () => seeds,
  };
}

/** A node as the program may write it. @param {any} node @returns {Address} */
function address(node) {
  if (typeof node === 'number') return { host: '127.0.0.1', port: node };
  if (typeof node === 'object') return { host: node.host ?? '127.0.0.1', port: Number(node.port ?? 6379) };
  const { hostname, port } = new URL(node.includes('://') ? node : `redis://${node}`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) };
}

import { mapping } from './mapping.js';

/** @import { Address, Connection, Events, Library } from './libraries.js' */

/** What would change or hold up a session's connection is taken out of the program's options. */
const OVERRIDES = {
  RESP: 3,
  url: undefined, // it was taken apart into `socket` when the client was made
  commandOptions: { timeout: 0 }, // replies whenever they come, however late
  commandsQueueMaxLength: undefined,
  disableOfflineQueue: true, // nothing may be kept for another connection
  pingInterval: 0,
  maintNotifications: 'disabled', // they lead a connection elsewhere without a word
  clientSideCache: undefined,
  emitInvalidate: false,
  readonly: false,
};

/** @param {any} client @returns {Library | undefined} */
export function nodeRedis(client) {
  if (typeof client.withTypeMapping !== 'function') {
    throw new TypeError('Locks needs redis 5 or newer: this client has no RESP3');
  }
  if (Array.isArray(client?.masters) && typeof client.nodeClient === 'function') return cluster(client);
  if (!client.options || !('isReady' in client)) return undefined;
  return {
    connection: (address, timeout, events) => connection(client, address, timeout, events),
  };
}

/** @param {any} client @param {Address | undefined} address @param {number} timeout @param {Events} events @returns {Connection} */
function connection(client, address, timeout, events) {
  const socket = {
    ...client.options.socket,
    ...address,
    connectTimeout: timeout,
    socketTimeout: undefined,
    reconnectStrategy: false,
  };
  const own = client.duplicate({ ...OVERRIDES, socket });
  own.on('error', events.closed);
  own.on('end', () => events.closed());
  own.on('sharded-channel-moved', events.moved);
  return {
    ready: () => own.connect(),
    named: Boolean(client.options.name),
    subscribe: (channel, sharded, onmessage) =>
      sharded ? own.sSubscribe(channel, onmessage) : own.subscribe(channel, onmessage),
    // By the listener too: otherwise it would take the next subscription of the channel for this one.
    unsubscribe: (channel, sharded, onmessage) =>
      sharded ? own.sUnsubscribe(channel, onmessage) : own.unsubscribe(channel, onmessage),
    call: (words) => own.sendCommand(words.map(String)),
    destroy: () => own.destroy(),
    keep: (keep) => (keep ? own.ref() : own.unref()),
  };
}

/** @param {any} client @returns {Library} */
function cluster(client) {
  /** @type {any} a client of one node, for its options: they come from several places */
  let template;
  return {
    connection: (address, timeout, events) => connection(template, address, timeout, events),
    mapped: mapping(client._options?.nodeAddressMap),
    async seeds(timeout) {
      const { defaults } = client._options;
      // A node that accepts a connection and then says nothing: the library waits for it for ever.
      const socket = { ...defaults?.socket, connectTimeout: timeout, socketTimeout: timeout, reconnectStrategy: false };
      const own = client.duplicate({ minimizeConnections: true, defaults: { ...defaults, socket } });
      /** @type {Error | undefined} */
      let why;
      own.on('error', (/** @type {Error} */ error) => (why = error));
      const read = async () => {
        await own.connect().catch((/** @type {Error} */ error) => Promise.reject(why ?? error));
        template = await own.nodeClient(own.masters[0]);
        return own.masters.map((/** @type {any} */ { host, port }) => ({ host, port }));
      };
      let late;
      const silence = new Promise((_, fail) => {
        late = setTimeout(() => fail(why ?? new Error(`not connected within ${timeout} ms`)), timeout);
      });
      try {
        return await Promise.race([read(), silence]);
      } finally {
        clearTimeout(late);
        own.destroy();
      }
    },
  };
}

// One open connection of a session, with its channel and its table of tags. It ends once,
// and everything that was under way on it then ends with Closed.
import { randomUUID } from 'node:crypto';
import { Heartbeat } from './heartbeat.js';
import { now } from './time.js';

/** @import { Address, Connection, Library } from './libraries.js' */
/** @import { Leases } from './heartbeat.js' */

/** What CLIENT LIST calls a connection that has no name of the program's. */
export const NAME = 'rlock-node-0.9.0';
const CLUSTER = 'CLUSTER this is a node of a cluster: give Locks the cluster client (createCluster, Cluster)';
export const NO_CLUSTER = 'CLUSTER this is no node of a cluster: give Locks a client of one server (createClient, Redis)';
// With these there is no sense in trying again: somebody has to change something.
const FINAL = ['NOPERM', 'NOAUTH', 'WRONGPASS', 'CLUSTER'];

/** The connection is closed; the session sees to what was under way. */
export class Closed extends Error {}

/** An error that the server answered. */
export class Refusal extends Error {
  /** @param {string} text */
  constructor(text) {
    super(text);
    this.code = text.split(' ', 1)[0];
  }

  /** Whether another server is, or will be, the one to ask. */
  get noMaster() {
    return ['READONLY', 'MASTERDOWN', 'LOADING', 'UNBLOCKED'].includes(this.code);
  }

  /** Whether it would be no other if it were asked again. */
  get final() {
    return FINAL.includes(this.code);
  }

  /** Whether, in a cluster, another node is, or will be, the one to ask. */
  get elsewhere() {
    return ['MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN'].includes(this.code);
  }
}

/** @param {Error} error What node-redis and ioredis reject with for an error reply begins so. */
export const isReply = (error) => /^[A-Z][A-Z0-9_]+ /.test(error?.message ?? '');

export class Link {
  /** @type {Map<string, {notified(word: string, rest: string): void}>} */
  tags = new Map();
  closed = false;
  /** @type {Error | undefined} why it was closed */
  why = undefined;
  #tag = 0;

  /** @param {Library} library @param {Address | undefined} address @param {number} timeout */
  constructor(library, address, timeout) {
    this.channel = '';
    this.onclose = () => {};
    this.onmoved = () => {};
    this.library = library;
    this.connection = library.connection(address, timeout, {
      closed: (why) => this.close(why),
      moved: () => this.onmoved(),
    });
  }

  /** Connects, within the time. @param {number} timeout */
  open(timeout) {
    return this.#within(timeout, async () => {
      await this.connection.ready();
      await this.#meet();
    });
  }

  /** Says who is here, which not everybody may, and asks whether it is for this kind of client. */
  async #meet() {
    const { connection, library } = this;
    if (!connection.named) connection.call(['CLIENT', 'SETNAME', NAME]).catch(() => {});
    const reply = /** @type {any} */ (await connection.call(['HELLO']));
    const mode = Array.isArray(reply) ? reply[reply.indexOf('mode') + 1] : reply?.mode;
    if (mode === 'cluster' && !library.seeds) throw new Refusal(CLUSTER);
    if (mode !== 'cluster' && library.seeds) throw new Refusal(NO_CLUSTER);
  }

  /** Listens to a new channel. @param {number} timeout @param {string} [tag] in a cluster: a hash tag for it */
  subscribe(timeout, tag) {
    const channel = (this.channel = `rlock:${tag === undefined ? '' : `{${tag}}:`}${randomUUID({ disableEntropyCache: true })}`);
    this.tags.clear();
    return this.#within(timeout, () =>
      this.connection.subscribe(channel, tag !== undefined, (message) => this.#notified(message)),
    );
  }

  /** It rejects with Refusal, or why it is closed. @param {number} timeout @param {() => Promise<unknown>} act */
  async #within(timeout, act) {
    const late = setTimeout(() => this.close(new Error(`not connected within ${timeout} ms`)), timeout);
    try {
      await act();
      if (this.closed) throw this.why ?? new Error('closed');
    } catch (error) {
      // The first reason is the best one: what comes later says that it is closed.
      const why = this.why ?? /** @type {Error} */ (error);
      throw isReply(why) ? new Refusal(why.message) : why;
    } finally {
      clearTimeout(late);
    }
  }

  /** Begins to watch over the connection. @param {Leases} leases */
  beat(leases) {
    this.heartbeat = new Heartbeat(this, leases);
  }

  /** A name for a request on this connection, never used again. @param {{notified(word: string, rest: string): void}} to */
  tag(to) {
    const tag = String(++this.#tag);
    this.tags.set(tag, to);
    return tag;
  }

  /**
   * @param {(string | number)[]} words
   * @returns {Promise<unknown>} rejects with Refusal or Closed
   */
  async call(words) {
    if (this.closed) throw new Closed();
    const sent = now();
    let reply;
    try {
      reply = await this.connection.call(words.map(String));
    } catch (error) {
      throw this.#rejected(/** @type {Error} */ (error), sent);
    }
    if (this.closed) throw new Closed();
    this.heartbeat?.proven(sent);
    return reply;
  }

  /** @param {Error} error @param {number} sent */
  #rejected(error, sent) {
    if (this.closed) return new Closed();
    if (!isReply(error)) {
      this.close(error);
      return new Closed();
    }
    this.heartbeat?.proven(sent);
    const refusal = new Refusal(error.message);
    if (!refusal.noMaster) return refusal;
    this.close(refusal);
    return new Closed();
  }

  /**
   * In a cluster: whether the server still has the subscription. Its own word on that can be
   * missed: node-redis takes it for a reply while a command is under way.
   */
  async checkChannel() {
    const { channel } = this;
    const reply = await this.call(['PUBSUB', 'SHARDNUMSUB', channel]);
    if (Array.isArray(reply) && !Number(reply[1]) && channel === this.channel) this.onmoved();
  }

  /** @param {string} message */
  #notified(message) {
    if (this.closed) return;
    const [, word, tag, rest] = /^(\S+) (\S+) ?(.*)$/s.exec(message) ?? [];
    this.tags.get(tag)?.notified(word, rest);
  }

  /** @param {Error} [why] */
  close(why) {
    if (this.closed) return;
    this.closed = true;
    this.why = why;
    this.heartbeat?.stop();
    this.connection.destroy();
    this.onclose();
  }
}

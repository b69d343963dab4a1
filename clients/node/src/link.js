// One open connection of a session, with its channel and its table of tags. It ends once,
// and everything that was under way on it then ends with Closed.
import { learn } from './backend.js';
import { Heartbeat } from './heartbeat.js';
import { Places } from './places.js';
import { Plain } from './plain.js';
import { uuid } from './random.js';
import { Closed, Refusal } from './refusal.js';
import { now } from './time.js';

/** @import { Address, Connection, Library } from './libraries.js' */
/** @import { Demands } from './backend.js' */
/** @import { Leases } from './heartbeat.js' */
/** @import { Backend } from './library.js' */

/** What CLIENT LIST calls a connection that has no name of the program's. */
export const NAME = 'rlock-node-0.9.0';
const CLUSTER = 'CLUSTER this is a node of a cluster: give Locks the cluster client (createCluster, Cluster)';
export const NO_CLUSTER = 'CLUSTER this is no node of a cluster: give Locks a client of one server (createClient, Redis)';
const NO_SHARDS = 'ERR a cluster needs Redis 7.0 or newer, or Valkey: this server has no sharded pub/sub';
/** @param {Error} error What node-redis and ioredis reject with for an error reply begins so. */
export const isReply = (error) => /^[A-Z][A-Z0-9_]+ /.test(error?.message ?? '');

/** @param {unknown} error @returns {never} */
const rejects = (error) => {
  throw error;
};

export class Link {
  /** @type {Map<string, {notified(word: string, rest: string, since?: number): void}>} */
  tags = new Map();
  closed = false;
  /** @type {Error | undefined} why it was closed */
  why = undefined;
  /** @type {Backend | undefined} what the server has for locks, once that is known */
  backend = undefined;
  /** @type {Plain | undefined} what stands for the module where there is none */
  plain = undefined;
  /** Whether the server may be asked to say that somebody waits for a hold (WANTED). */
  hints = true;
  #tag = 0;

  /** @param {Library} library @param {Address | undefined} address @param {number} timeout */
  constructor(library, address, timeout) {
    this.channel = '';
    this.onclose = () => {};
    this.onmoved = () => {};
    this.library = library;
    this.cluster = library.seeds !== undefined;
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
    const { connection } = this;
    if (!connection.named) connection.call(['CLIENT', 'SETNAME', NAME]).catch(() => {});
    const reply = /** @type {any} */ (await connection.call(['HELLO']));
    const mode = Array.isArray(reply) ? reply[reply.indexOf('mode') + 1] : reply?.mode;
    if (mode === 'cluster' && !this.cluster) throw new Refusal(CLUSTER);
    if (mode !== 'cluster' && this.cluster) throw new Refusal(NO_CLUSTER);
  }

  /** Listens to a new channel. @param {number} timeout @param {string} [tag] in a cluster: a hash tag for it */
  subscribe(timeout, tag) {
    const channel = (this.channel = `rlock:${tag === undefined ? '' : `{${tag}}:`}${uuid()}`);
    this.tags.clear();
    return this.#within(timeout, async () => {
      try {
        await this.connection.subscribe(channel, tag !== undefined, (message) => this.#notified(message));
      } catch (error) {
        const old = tag !== undefined && /^ERR unknown command/i.test(/** @type {Error} */ (error).message);
        throw old ? new Refusal(NO_SHARDS, true) : error;
      }
    });
  }

  /** Finds out what the server has for locks. @param {number} timeout @param {Demands} demands @param {Places} places */
  learn(timeout, demands, places) {
    return this.#within(timeout, async () => {
      const backend = await learn(this);
      demands.check(backend);
      this.adopt(backend, places);
      this.plain?.watch();
    });
  }

  /** @param {Backend | undefined} backend what the server is known to have @param {Places} [places] */
  adopt(backend, places = new Places()) {
    this.backend = backend;
    if (!backend || backend.kind === 'module') return;
    this.plain = new Plain(this, backend, places);
    this.hints = false;
  }

  /**
   * Whether that is so because its module does not know the word, or this user may not say it. Then nobody says it here again.
   * @param {(string | number)[]} line @param {unknown} error
   */
  refusesHints(line, error) {
    const refuses = error instanceof Refusal && (error.code === 'NOPERM' || error.isSyntax);
    if (!refuses || line.at(-1) !== 'WANTED') return false;
    this.hints = false;
    return true;
  }

  /** Listens to a lock's channel. @param {string} channel @param {() => void} onmessage */
  async hear(channel, onmessage) {
    try {
      await this.connection.subscribe(channel, this.cluster, onmessage);
    } catch (error) {
      throw this.#rejected(/** @type {Error} */ (error), 0, 0);
    }
  }

  /** @param {string} channel @param {() => void} onmessage */
  unhear(channel, onmessage) {
    if (!this.closed) this.connection.unsubscribe(channel, this.cluster, onmessage).catch(() => {});
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
      throw isReply(why) && !(why instanceof Refusal) ? new Refusal(why.message) : why;
    } finally {
      clearTimeout(late);
    }
  }

  /** Begins to watch over the connection. @param {Leases} leases @param {number} patience */
  beat(leases, patience) {
    this.heartbeat = new Heartbeat(this, leases, patience);
  }

  /** A name for a request on this connection, never used again. @param {{notified(word: string, rest: string, since?: number): void}} to */
  tag(to) {
    const tag = String(++this.#tag);
    this.tags.set(tag, to);
    return tag;
  }

  /**
   * A command, which may be one of the module's also where there is none.
   * @param {(string | number)[]} words
   * @returns {Promise<unknown>} rejects with Refusal or Closed
   */
  call(words) {
    return this.plain && String(words[0]).startsWith('RLOCK.') ? this.plain.call(words) : this.send(words);
  }

  /**
   * A command of the server's own. Never throws.
   * @param {(string | number)[]} words @param {(error: unknown) => unknown} [failed]  what comes instead of that error
   * @returns {Promise<unknown>} rejects with Refusal or Closed
   */
  send(words, failed = rejects) {
    if (this.closed) return Promise.reject(new Closed());
    const sent = now();
    const day = Date.now();
    return this.connection.call(words).then(
      (reply) => {
        if (this.closed) throw new Closed();
        this.heartbeat?.proven(sent, day);
        return reply;
      },
      (error) => failed(this.#rejected(error, sent, day)),
    );
  }

  /** @param {Error} error @param {number} sent @param {number} day */
  #rejected(error, sent, day) {
    if (this.closed) return new Closed();
    if (!isReply(error)) {
      this.close(error);
      return new Closed();
    }
    this.heartbeat?.proven(sent, day);
    const refusal = new Refusal(error.message);
    // It has no module any more: the next connection finds out what there is. An older one has no heartbeats.
    const gone = this.backend?.kind === 'module' && /^ERR unknown command\W+RLOCK\.(?!HEARTBEAT)/i.test(error.message);
    if (!refusal.noMaster && !gone) return refusal;
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
    const [, word, tag, rest] = /^(\S+) (\S+) ?(.*)$/s.exec(message) ?? [];
    this.notify(tag, word, rest);
  }

  /** @param {string} tag @param {string} word @param {string} rest @param {number} [since]  when the lease began, at the latest */
  notify(tag, word, rest, since) {
    if (!this.closed) this.tags.get(tag)?.notified(word, rest, since);
  }

  /** @param {Error} [why] */
  close(why) {
    if (this.closed) return;
    this.closed = true;
    this.why = why;
    this.heartbeat?.stop();
    this.plain?.stop();
    this.connection.destroy();
    this.onclose();
  }
}

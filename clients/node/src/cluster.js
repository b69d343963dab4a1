// From key to session in a cluster: a session for each node, and the table of slots, which is
// read again when a node says that a slot has moved, and when a node cannot be reached.
import { ConnectionError, fromServer } from './errors.js';
import { Link, NO_CLUSTER, isReply } from './link.js';
import { Places } from './places.js';
import { Refusal } from './refusal.js';
import { Session } from './session.js';
import { slotOf, tagFor } from './slots.js';
import { now } from './time.js';

/** @import { Demands } from './backend.js' */
/** @import { Address, Library } from './libraries.js' */
/** @import { Held } from './held.js' */
/** @import { PendingCommand, Work } from './session.js' */

// Between two readings: a slot that moves needs its time, and so does a failover.
const PAUSE = 100;

const pause = () => new Promise((done) => setTimeout(done, PAUSE).unref());

export class ClusterRouter {
  /** @type {string[]} by slot: the node that serves it */
  #nodes = [];
  /** @type {Map<string, Session>} */
  #sessions = new Map();
  /** @type {Address[]} */
  #seeds = [];
  /** @type {Promise<void> | undefined} */
  #reading;
  #closed = false;
  /** Of all nodes: a slot goes from one to another with the queues in it. */
  #places = new Places();
  /** @type {Link | undefined} over which the table is being read */
  #link;

  /** @param {Library} library @param {number} timeout @param {Demands} demands */
  constructor(library, timeout, demands) {
    this.library = library;
    this.timeout = timeout;
    this.demands = demands;
  }

  /** @param {string[]} keys @returns {Session | Promise<Session>} */
  sessionOf(keys) {
    return this.#sessionOf(keys) ?? this.#find(keys);
  }

  /** Rejects when no node says within the time who serves what. @param {string[]} keys */
  async #find(keys) {
    const until = now() + this.timeout;
    for (;;) {
      const session = this.#sessionOf(keys);
      if (session) return session;
      try {
        await this.#read();
      } catch (error) {
        const { message } = /** @type {Error} */ (error);
        if (error instanceof Refusal && error.final) throw fromServer(message);
        if (this.#closed || now() >= until) throw new ConnectionError(`no node of the cluster: ${message}`, { cause: error });
        await new Promise((done) => setTimeout(done, PAUSE));
      }
    }
  }

  /** @param {string[]} keys */
  #sessionOf(keys) {
    const node = this.#nodes[slotOf(keys[0])];
    if (node === undefined) return undefined;
    let session = this.#sessions.get(node);
    if (!session) {
      const at = node.lastIndexOf(':');
      const address = { host: node.slice(0, at), port: Number(node.slice(at + 1)) };
      session = new Session(this.library, address, this.timeout, this.demands, this.#places);
      session.cluster = this;
      this.#sessions.set(node, session);
    }
    return session;
  }

  /** A hash tag of a slot that the node of this session serves; throws where it serves none. @param {Session} session */
  tagOf({ address }) {
    const node = `${address?.host}:${address?.port}`;
    if (!this.#nodes.includes(node)) throw new Error('the node serves no slot');
    return tagFor((slot) => this.#nodes[slot] === node);
  }

  /**
   * A channel in a slot that the node still serves; where there is none the connection is closed.
   * @param {Session} session @param {Link} link
   */
  async rename(session, link) {
    while (!link.closed) {
      await this.#again();
      try {
        return await link.subscribe(this.timeout, this.tagOf(session));
      } catch (error) {
        // What is known of the slots is old, or else it cannot be read any more.
        if (!(error instanceof Refusal && error.elsewhere)) link.close(/** @type {Error} */ (error));
      }
    }
  }

  /** The node does not serve it, or not yet, or cannot be reached. @param {Session} from @param {Work} work */
  async moved(from, work) {
    await this.#again();
    if (!from.work.has(work) || this.#closed) return;
    const to = this.#sessionOf(work.claim.keys);
    if (!to || to === from) {
      if (from.link) work.ask();
      return;
    }
    work.moveTo(to);
  }

  /** @param {Session} from @param {PendingCommand} pending */
  async movedPending(from, pending) {
    await this.#again();
    if (!from.pendingCommands.has(pending)) return;
    (this.#sessionOf(pending.claim.keys) ?? from).takeOver(from, pending);
  }

  /** A hold that goes on where its slot is. @param {Session} from @param {Held} hold */
  async movedHold(from, hold) {
    await this.#again();
    const to = this.#sessionOf(hold.claim.keys);
    if (to && to !== from && from.holds.has(hold)) hold.moveTo(to);
  }

  /** A connection could not be opened, or was lost: somebody else may serve its slots by now. @param {Session} session */
  async lost(session) {
    if (this.#closed) return;
    await this.#again();
    if (session.link || this.#closed) return;
    const elsewhere = (/** @type {string[]} */ keys) => {
      const to = this.#sessionOf(keys);
      return to !== session ? to : undefined;
    };
    for (const pending of [...session.pendingCommands]) elsewhere(pending.claim.keys)?.takeOver(session, pending);
    for (const work of [...session.work]) {
      const to = elsewhere(work.claim.keys);
      if (to) work.moveTo(to);
    }
    for (const hold of [...session.holds]) {
      const to = hold.renewed && elsewhere(hold.claim.keys);
      if (to) hold.moveTo(to);
    }
  }

  /** Reads the table again, after a while; what is known stays known if nobody answers. */
  async #again() {
    await pause();
    await this.#read().catch(() => {});
  }

  #read() {
    return (this.#reading ??= this.#readOnce().finally(() => (this.#reading = undefined)));
  }

  async #readOnce() {
    for (const session of this.#sessions.values()) {
      if (!session.link) continue;
      const asked = await this.#ask(session.link, session.address?.host).catch(() => false);
      if (asked) return;
    }
    if (!this.#seeds.length) this.#seeds = await this.#readSeeds();
    let why = new Error('there are none');
    for (const address of [...this.#seeds, ...[...this.#sessions.values()].map((session) => session.address)]) {
      if (!address) continue;
      if (this.#closed) throw new Error('closed');
      const link = (this.#link = new Link(this.library, address, this.timeout));
      try {
        await link.open(this.timeout);
        if (await this.#ask(link, address.host)) return;
      } catch (error) {
        why = /** @type {Error} */ (error);
      } finally {
        link.close();
      }
    }
    throw why;
  }

  async #readSeeds() {
    try {
      return (await this.library.seeds?.(this.timeout)) ?? [];
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      if (message.includes('cluster support disabled')) throw new Refusal(NO_CLUSTER);
      throw isReply(/** @type {Error} */ (error)) ? new Refusal(message) : error;
    }
  }

  /** @param {Link} link @param {string | undefined} host of the node that is asked */
  async #ask(link, host) {
    const reply = /** @type {[number, number, [string | null, number]][]} */ (await link.call(['CLUSTER', 'SLOTS']));
    if (!Array.isArray(reply) || !reply.length) return false;
    /** @type {string[]} */
    const nodes = [];
    for (const [first, last, [name, port]] of reply) {
      const address = { host: String(name || host), port: Number(port) };
      const { host: to, port: at } = this.library.mapped?.(address) ?? address;
      for (let slot = Number(first); slot <= Number(last); slot++) nodes[slot] = `${to}:${at}`;
    }
    this.#nodes = nodes;
    return true;
  }

  async close() {
    this.#closed = true;
    this.#link?.close();
    const open = () => [...this.#sessions.values()].filter((session) => !session.closed || session.pendingCommands.size);
    // What was pending for one node, another may have to get by now.
    while (open().length) await Promise.all(open().map((session) => session.close()));
  }
}

// One connection to one server, as long as there is something to do: it is opened, closed and
// opened again here, and everything that lives on it is notified.
import { Acks } from './acks.js';
import { ConnectionError, fromServer } from './errors.js';
import { Leases } from './heartbeat.js';
import { Link } from './link.js';
import { Places } from './places.js';
import { Closed, Refusal } from './refusal.js';
import { Renewals } from './renewals.js';
import { ANSWER, Alarm, now } from './time.js';
import * as words from './words.js';

/** @import { Demands } from './backend.js' */
/** @import { Address, Library } from './libraries.js' */
/** @import { Claim } from './options.js' */
/** @import { Held } from './held.js' */
/** @import { ClusterRouter } from './cluster.js' */

const FIRST_BACKOFF = 50;
const LONGEST_BACKOFF = 1000;
// So long the server keeps the place of a request that broke off (rlock.keep-place).
const KEPT_PLACE = 15_000;

/**
 * @typedef {object} Work  what wants a connection
 * @property {Claim} claim
 * @property {(to: Session) => void} moveTo  another node of the cluster
 * @property {() => void} ask  there is a new connection
 * @property {() => void} cut  the connection is gone
 * @property {(error: Error) => void} giveUp
 *
 * @typedef {object} PendingCommand  what still has to reach the server, on the next connection if not on this one
 * @property {Claim} claim
 * @property {(string | number)[][]} lines
 * @property {number} until  then the server has forgotten it by itself
 * @property {boolean} sent  on this connection, and there is no reply yet
 * @property {boolean} refused  the server did not take it for now
 */

export class Session {
  /** @type {Link | undefined} */
  link = undefined;
  leases = new Leases();
  renewals = new Renewals();
  /** @type {Set<Work>} */
  work = new Set();
  /** @type {Set<Held>} */
  holds = new Set();
  /** @type {Map<string, Held>} by key: the last of them */
  held = new Map();
  /** @type {Set<PendingCommand>} */
  pendingCommands = new Set();
  closed = false;
  /** @type {ClusterRouter | undefined} */
  cluster = undefined;
  /** @type {Link | undefined} */
  #opening = undefined;
  #backoff = 0;
  #kept = true;
  /** @type {Error | undefined} why there is no connection */
  why = undefined;

  /** @param {Library} library @param {Address | undefined} address @param {number} timeout @param {Demands} demands @param {Places} [places] */
  constructor(library, address, timeout, demands, places = new Places()) {
    this.library = library;
    this.address = address;
    this.timeout = timeout;
    this.demands = demands;
    this.places = places;
    this.acks = new Acks(this);
  }

  /** @param {Work} work */
  add(work) {
    if (this.closed) return work.giveUp(new ConnectionError('these locks are closed'));
    this.work.add(work);
    this.keep();
    if (this.link) work.ask();
    else this.#wake();
  }

  /** @param {Work} work */
  remove(work) {
    this.work.delete(work);
    this.keep();
  }

  /** Keeps the process alive while there is something that it waits for. */
  keep() {
    const busy = this.#busy();
    if (this.retry) busy ? this.retry.ref() : this.retry.unref();
    if (busy === this.#kept || !this.link) return;
    this.#kept = busy;
    this.link.connection.keep(busy);
  }

  #busy() {
    if (this.work.size || this.holds.size) return true;
    // With WATCHDOG the end of the process frees it too, where the module is; but a reply may be awaited.
    const frees = this.demands.found === 'module';
    for (const { sent, refused, claim } of this.pendingCommands) {
      if (sent || !(refused || (claim.watchdog && frees))) return true;
    }
    return false;
  }

  #wake() {
    if (!this.work.size && !this.holds.size && !this.pendingCommands.size) return;
    if (!this.link && !this.#opening && !this.retry) this.#open();
  }

  async #open() {
    let link;
    try {
      link = this.#opening = new Link(this.library, this.address, this.timeout);
      await link.open(this.timeout);
      await Promise.all([link.subscribe(this.timeout, this.cluster?.tagOf(this)), link.learn(this.timeout, this.demands, this.places)]);
    } catch (error) {
      link?.close();
      this.#opening = undefined;
      return this.#failed(/** @type {Error} */ (error));
    }
    this.#opening = undefined;
    this.#kept = true;
    link.onclose = () => this.#cut(link);
    link.onmoved = () => this.#rename(link);
    link.beat(this.leases, this.demands.patience);
    if (link.heartbeat) link.heartbeat.onbeat = () => this.#onbeat();
    this.#opened(link);
  }

  /** There is a channel. @param {Link} link */
  #opened(link) {
    if (this.closed && !this.pendingCommands.size) return link.close();
    this.link = link;
    this.why = undefined;
    for (const pending of this.pendingCommands) if (!pending.sent) this.#sendPending(pending);
    for (const hold of [...this.holds]) hold.regain(link);
    for (const work of [...this.work]) work.ask();
    this.keep();
  }

  /** The slot of the channel has gone to another node: by another channel. @param {Link} link */
  async #rename(link) {
    if (this.link !== link) return; // it is under way
    this.link = undefined;
    this.#opening = link;
    for (const work of [...this.work]) work.cut();
    await this.cluster?.rename(this, link);
    this.#opening = undefined;
    if (link.closed) this.#wake();
    else this.#opened(link);
  }

  /** @param {Error} error */
  #failed(error) {
    this.why = error;
    if (error instanceof Refusal && error.final) {
      for (const work of [...this.work]) work.giveUp(fromServer(error.message));
    }
    this.#again();
  }

  /** @param {Link} link */
  #cut(link) {
    this.link = undefined;
    this.why = link.why;
    for (const pending of this.pendingCommands) pending.sent = false;
    for (const hold of [...this.holds]) hold.cut();
    for (const work of [...this.work]) work.cut();
    this.#again();
  }

  /** At once, then with a backoff that grows until the server has answered something. */
  #again() {
    const time = now();
    for (const pending of this.pendingCommands) if (time > pending.until) this.#forget(pending);
    if (this.closed && !this.pendingCommands.size) return;
    this.cluster?.lost(this);
    const retry = () => {
      this.retry = undefined;
      this.#wake();
    };
    this.retry = setTimeout(retry, this.#backoff);
    this.keep();
    this.#backoff = Math.min(Math.max(this.#backoff * 2, FIRST_BACKOFF), LONGEST_BACKOFF);
  }

  /** The server has answered as a master does. */
  answered() {
    this.#backoff = 0;
  }

  #onbeat() {
    this.answered();
    this.#checkChannel();
    for (const pending of this.pendingCommands) if (pending.refused) this.#sendPending(pending);
  }

  /**
   * Calls off what the owner waits for, and ends what it may have been granted.
   * @param {Claim} claim @param {boolean} waits
   */
  callOff(claim, waits) {
    // Without the module one that was overwritten must not keep the others.
    const disown = this.demands.found === 'module' ? [words.disown(claim)] : words.disownEach(claim);
    const pending = this.#addPending(claim, waits ? [words.cancel(claim), ...disown] : disown);
    if (this.link) this.#sendPending(pending);
    else this.#wake();
  }

  /** Ends a hold. @param {Held} hold @param {(error?: Error) => void} done  may be called again */
  release(hold, done) {
    const { claim } = hold;
    const { link } = this;
    if (!link) {
      this.#addPending(claim, [words.disown(claim)]);
      this.#wake();
      return done();
    }
    // By its token; but another run of the server need not know that.
    const answered = link.call(hold.outlived ? words.disown(claim) : words.release(claim, hold.token));
    // The server is at work while the rest is done.
    const pending = this.#addPending(claim, [words.disown(claim)]);
    // No longer than that: what has no reply is retried.
    const late = new Alarm(now() + this.timeout, done, ANSWER);
    answered.then(
      (reply) => {
        late.clear();
        this.#settled(pending);
        // Without the module there is no message of a loss.
        if (link.plain && claim.keys.length > Math.max(Number(reply), 1)) hold.missed('NOTHELD');
        done();
      },
      (error) => {
        late.clear();
        done(this.#unsettled(pending, error, link, hold));
      },
    );
  }

  /** Its release has ended with this error; which of it is for the program. @param {PendingCommand} pending @param {Error} error @param {Link} link @param {Held} hold */
  #unsettled(pending, error, link, hold) {
    if (error instanceof Closed) return undefined; // on the next connection, then
    if (link.plain && error instanceof Refusal && hold.missed(error.code)) this.#settled(pending);
    else if (this.elsewhere(error)) this.cluster?.movedPending(this, pending);
    else {
      this.#refused(pending);
      return fromServer(error.message);
    }
    return undefined;
  }

  /** @param {Claim} claim @param {(string | number)[][]} lines */
  #addPending(claim, lines) {
    const until = now() + Math.max(claim.lease, KEPT_PLACE);
    /** @type {PendingCommand} */
    const pending = { claim, lines, until, sent: this.link !== undefined, refused: false };
    this.pendingCommands.add(pending);
    this.leases.add(claim);
    this.keep();
    return pending;
  }

  /** @param {PendingCommand} pending @returns {Promise<void>} never rejects */
  async #sendPending(pending) {
    const { link } = this;
    if (!link) return;
    pending.sent = true;
    pending.refused = false;
    this.keep();
    try {
      await Promise.all(pending.lines.map((line) => link.call(line)));
      this.#settled(pending);
    } catch (error) {
      if (error instanceof Closed) return;
      if (this.elsewhere(error)) this.cluster?.movedPending(this, pending);
      else this.#refused(pending);
    }
  }

  /** @param {unknown} error @returns {error is Refusal} */
  elsewhere(error) {
    return this.cluster !== undefined && error instanceof Refusal && error.elsewhere;
  }

  /** Another node of the cluster is the one to ask. @param {Refusal} refusal @param {Work} work */
  redirect(refusal, work) {
    if (!this.elsewhere(refusal)) return false;
    this.cluster?.moved(this, work);
    return true;
  }

  /**
   * A request may have been refused because the slot of the channel has moved, before that was
   * known here. All work is cut then, and asked for by another channel.
   * @param {Refusal} refusal
   */
  async findChannel(refusal) {
    if (refusal.code === 'ERR') await this.#checkChannel();
  }

  async #checkChannel() {
    if (this.cluster) await this.link?.checkChannel().catch(() => {});
  }

  /** What was pending for another node. @param {Session} from @param {PendingCommand} pending */
  takeOver(from, pending) {
    pending.sent = false;
    if (from !== this) {
      this.pendingCommands.add(pending);
      this.leases.add(pending.claim);
      from.#settled(pending);
    }
    if (this.link) this.#sendPending(pending);
    else this.#wake();
  }

  /** @param {PendingCommand} pending */
  #settled(pending) {
    this.#forget(pending);
    this.keep();
    this.onsettled?.();
  }

  /** @param {PendingCommand} pending */
  #forget(pending) {
    if (this.pendingCommands.delete(pending)) this.leases.remove(pending.claim);
  }

  /** @type {(() => void) | undefined} */
  onsettled = undefined;

  /** The server cannot write for now: at the next heartbeat again. @param {PendingCommand} pending */
  #refused(pending) {
    pending.sent = false;
    pending.refused = true;
    this.keep();
    this.onsettled?.();
  }

  /**
   * An owner asks anew for what it gave up: what was refused is sent now, before that, and
   * not later, when it would end the new hold.
   * @param {Claim} claim
   */
  settle(claim) {
    for (const pending of this.pendingCommands) {
      const same = pending.claim.owner === claim.owner && pending.claim.keys.some((key) => claim.keys.includes(key));
      if (!pending.refused || !same) continue;
      this.#sendPending(pending);
      this.#forget(pending);
    }
  }

  /** A hold that goes on at this node of the cluster. @param {Held} hold */
  adopt(hold) {
    if (this.link) hold.regain(this.link);
    else this.#wake();
  }

  /** The error that the program gets when its time ends without an answer. */
  unreachable() {
    const error = this.why ?? new Error('no answer');
    return new ConnectionError(`no connection to the server: ${error.message || error}`, { cause: error });
  }

  /** Ends everything: holds are released, waits cancelled, and the connection is closed. */
  async close() {
    this.closed = true;
    for (const work of [...this.work]) work.giveUp(new ConnectionError('these locks are closed'));
    for (const hold of [...this.holds]) hold.close();
    await this.#allSettled();
    clearTimeout(this.retry);
    this.retry = undefined;
    this.pendingCommands.clear();
    this.acks.close();
    this.#opening?.close();
    this.link?.close();
  }

  /** @returns {Promise<void>} all that the server would take, within the time */
  #allSettled() {
    return new Promise((resolve) => {
      const done = () => (clearTimeout(late), resolve());
      const late = setTimeout(done, this.timeout);
      this.onsettled = () => {
        for (const pending of this.pendingCommands) if (!pending.refused) return;
        done();
      };
      this.onsettled();
    });
  }
}

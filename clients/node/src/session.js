// One connection to one server, as long as there is something to do: it is opened, closed and
// opened again here, and everything that lives on it is told.
import { Acks } from './acks.js';
import { ConnectionError, fromServer } from './errors.js';
import { Leases } from './heartbeat.js';
import { Closed, Link, Refusal } from './link.js';
import { ANSWER, Alarm, now } from './time.js';
import * as words from './words.js';

/** @import { Address, Library } from './libraries.js' */
/** @import { Claim } from './options.js' */
/** @import { Hold } from './hold.js' */
/** @import { ClusterRouter } from './cluster.js' */

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1000;
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
 * @typedef {object} Debt  what the server has to be told, on the next connection if not on this one
 * @property {Claim} claim
 * @property {(string | number)[][]} lines
 * @property {number} until  then the server has forgotten it by itself
 * @property {boolean} said  on this connection, and there is no reply yet
 * @property {boolean} refused  the server did not take it for now
 */

export class Session {
  /** @type {Link | undefined} */
  link = undefined;
  leases = new Leases();
  /** @type {Set<Work>} */
  work = new Set();
  /** @type {Set<Hold>} */
  holds = new Set();
  /** @type {Map<string, Hold>} by key: the last of them */
  held = new Map();
  /** @type {Set<Debt>} */
  debts = new Set();
  closed = false;
  /** @type {ClusterRouter | undefined} */
  cluster = undefined;
  /** @type {Link | undefined} */
  #opening = undefined;
  #pause = 0;
  #kept = true;
  /** @type {Error | undefined} why there is no connection */
  why = undefined;

  /** @param {Library} library @param {Address | undefined} address @param {number} timeout */
  constructor(library, address, timeout) {
    this.library = library;
    this.address = address;
    this.timeout = timeout;
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
    // With WATCHDOG the end of the process frees it too; but a reply may be awaited.
    for (const { said, refused, claim } of this.debts) if (said || !(refused || claim.watchdog)) return true;
    return false;
  }

  #wake() {
    if (!this.work.size && !this.holds.size && !this.debts.size) return;
    if (!this.link && !this.#opening && !this.retry) this.#open();
  }

  async #open() {
    let link;
    try {
      link = this.#opening = new Link(this.library, this.address, this.timeout);
      await link.open(this.timeout);
      await link.subscribe(this.timeout, this.cluster && (this.cluster.tagOf(this) ?? '0'));
    } catch (error) {
      link?.close();
      this.#opening = undefined;
      return this.#failed(/** @type {Error} */ (error));
    }
    this.#opening = undefined;
    this.#kept = true;
    link.onclose = () => this.#cut(link);
    link.onmoved = () => this.#rename(link);
    link.beat(this.leases);
    if (link.heartbeat) link.heartbeat.onbeat = () => this.#onbeat();
    this.#opened(link);
  }

  /** There is a channel. @param {Link} link */
  #opened(link) {
    if (this.closed && !this.debts.size) return link.close();
    this.link = link;
    this.why = undefined;
    for (const debt of this.debts) if (!debt.said) this.#pay(debt);
    for (const hold of [...this.holds]) hold._stand(link);
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
    for (const debt of this.debts) debt.said = false;
    for (const hold of [...this.holds]) hold._cut();
    for (const work of [...this.work]) work.cut();
    this.#again();
  }

  /** At once, then after a pause that grows until the server has answered something. */
  #again() {
    const time = now();
    for (const debt of this.debts) if (time > debt.until) this.#forget(debt);
    if (this.closed && !this.debts.size) return;
    this.cluster?.lost(this);
    const retry = () => {
      this.retry = undefined;
      this.#wake();
    };
    this.retry = setTimeout(retry, this.#pause);
    this.keep();
    this.#pause = Math.min(Math.max(this.#pause * 2, FIRST_PAUSE), LONGEST_PAUSE);
  }

  /** The server has answered as a master does. */
  answered() {
    this.#pause = 0;
  }

  #onbeat() {
    this.answered();
    this.#checkChannel();
    for (const debt of this.debts) if (debt.refused) this.#pay(debt);
  }

  /**
   * Calls off what the owner waits for, and ends what it may have been granted.
   * @param {Claim} claim @param {boolean} waits
   */
  callOff(claim, waits) {
    const disown = words.disown(claim);
    const debt = this.#owe(claim, waits ? [words.cancel(claim), disown] : [disown]);
    if (this.link) this.#pay(debt);
    else this.#wake();
  }

  /** Ends a hold. @param {Hold} hold */
  async release(hold) {
    const { claim } = hold;
    const { link } = this;
    const debt = this.#owe(claim, [words.disown(claim)]);
    if (!link) return this.#wake();
    // By its token; but another run of the server need not know that.
    const said = this.#say(debt, hold.outlived ? words.disown(claim) : words.release(claim, hold.token), link);
    // No longer than that: what has no reply is said again.
    await new Promise((resolve, reject) => {
      const late = new Alarm(now() + this.timeout, () => resolve(undefined), ANSWER);
      said.then(resolve, reject).finally(() => late.clear());
    });
  }

  /** @param {Debt} debt @param {(string | number)[]} line @param {Link} link */
  async #say(debt, line, link) {
    try {
      await link.call(line);
      this.#paid(debt);
    } catch (error) {
      if (error instanceof Closed) return; // on the next connection, then
      if (this.elsewhere(error)) return void this.cluster?.movedDebt(this, debt);
      this.#refused(debt);
      throw fromServer(/** @type {Error} */ (error).message);
    }
  }

  /** @param {Claim} claim @param {(string | number)[][]} lines */
  #owe(claim, lines) {
    const until = now() + Math.max(claim.lease, KEPT_PLACE);
    /** @type {Debt} */
    const debt = { claim, lines, until, said: this.link !== undefined, refused: false };
    this.debts.add(debt);
    this.leases.add(claim);
    this.keep();
    return debt;
  }

  /** @param {Debt} debt @returns {Promise<void>} never rejects */
  async #pay(debt) {
    const { link } = this;
    if (!link) return;
    debt.said = true;
    debt.refused = false;
    this.keep();
    try {
      await Promise.all(debt.lines.map((line) => link.call(line)));
      this.#paid(debt);
    } catch (error) {
      if (error instanceof Closed) return;
      if (this.elsewhere(error)) this.cluster?.movedDebt(this, debt);
      else this.#refused(debt);
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
   * heard of here. All work is cut then, and asked for by another channel.
   * @param {Refusal} refusal
   */
  async findChannel(refusal) {
    if (refusal.code === 'ERR') await this.#checkChannel();
  }

  async #checkChannel() {
    if (this.cluster) await this.link?.checkChannel().catch(() => {});
  }

  /** What another node was to be told. @param {Session} from @param {Debt} debt */
  takeOver(from, debt) {
    debt.said = false;
    if (from !== this) {
      this.debts.add(debt);
      this.leases.add(debt.claim);
      from.#paid(debt);
    }
    if (this.link) this.#pay(debt);
    else this.#wake();
  }

  /** @param {Debt} debt */
  #paid(debt) {
    this.#forget(debt);
    this.keep();
    this.ondebt?.();
  }

  /** @param {Debt} debt */
  #forget(debt) {
    if (this.debts.delete(debt)) this.leases.remove(debt.claim);
  }

  /** @type {(() => void) | undefined} */
  ondebt = undefined;

  /** The server cannot write for now: at the next heartbeat again. @param {Debt} debt */
  #refused(debt) {
    debt.said = false;
    debt.refused = true;
    this.keep();
    this.ondebt?.();
  }

  /**
   * An owner asks anew for what it gave up: what was refused is said now, before that, and
   * not later, when it would end the new hold.
   * @param {Claim} claim
   */
  settle(claim) {
    for (const debt of this.debts) {
      const same = debt.claim.owner === claim.owner && debt.claim.keys.some((key) => claim.keys.includes(key));
      if (!debt.refused || !same) continue;
      this.#pay(debt);
      this.#forget(debt);
    }
  }

  /** What the program is told when its time ends without an answer. */
  unreachable() {
    const error = this.why ?? new Error('no answer');
    return new ConnectionError(`no connection to the server: ${error.message || error}`, { cause: error });
  }

  /** Ends everything: holds are released, waits called off, and the connection is closed. */
  async close() {
    this.closed = true;
    for (const work of [...this.work]) work.giveUp(new ConnectionError('these locks are closed'));
    for (const hold of [...this.holds]) hold._close();
    await this.#debtsPaid();
    clearTimeout(this.retry);
    this.retry = undefined;
    this.debts.clear();
    this.acks.close();
    this.#opening?.close();
    this.link?.close();
  }

  /** @returns {Promise<void>} all that the server would take, within the time */
  #debtsPaid() {
    return new Promise((resolve) => {
      const done = () => (clearTimeout(late), resolve());
      const late = setTimeout(done, this.timeout);
      this.ondebt = () => {
        for (const debt of this.debts) if (!debt.refused) return;
        done();
      };
      this.ondebt();
    });
  }
}

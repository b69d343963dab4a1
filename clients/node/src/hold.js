// What an acquisition became. Members that begin with _ are the session's.
import { LostError, RefusedError } from './errors.js';
import { insist } from './insist.js';
import { Refusal } from './link.js';
import { duration } from './options.js';
import { Alarm, now } from './time.js';
import * as words from './words.js';

/** @import { Claim, Plan } from './options.js' */
/** @import { Job } from './locks.js' */
/** @import { Link } from './link.js' */
/** @import { Session } from './session.js' */

// What the server says when there is no such hold, and why it was lost then.
/** @type {Record<string, string | undefined>} */
const GONE = { NOTHELD: 'expired', WRONGTYPE: 'overwritten' };

export class Hold {
  #count = 1;
  /** @type {LostError | null} */
  #lost = null;
  /** @type {AbortController | undefined} made when it is asked for: most holds end without */
  #controller;
  /** @type {Alarm | undefined} for the deadline, or for max */
  #alarm;
  #session;
  #job;
  #tag;

  /**
   * @param {Session} session @param {Link} link @param {string} tag
   * @param {Claim} claim @param {number} token @param {Plan} plan
   * @param {number | undefined} since  when the lease began, at the latest
   * @param {Job | undefined} job
   */
  constructor(session, link, tag, claim, token, plan, since, job) {
    this.token = token;
    this.#session = session;
    /** @type {Link | undefined} on which its loss is notified */
    this.link = link;
    /** The connection that took it is gone. */
    this.outlived = false;
    this.#tag = tag;
    this.claim = claim;
    this.#job = job;
    session.holds.add(this);
    for (const key of claim.keys) session.held.set(key, this);
    session.keep();
    if (plan.max) this.#alarm = new Alarm(now() + plan.max, () => this.#giveBack('max'));
    if (!plan.watchdog && since !== undefined) this.#endsAt(since + claim.lease);
  }

  get key() {
    return this.claim.keys[0];
  }

  get keys() {
    return [...this.claim.keys];
  }

  get owner() {
    return this.claim.owner;
  }

  get lost() {
    this.#look();
    return this.#lost;
  }

  get signal() {
    this.#look();
    this.#controller ??= new AbortController();
    if (this.#lost) this.#controller.abort(this.#lost);
    return this.#controller.signal;
  }

  /** What a log shows of it. */
  toJSON() {
    return { keys: this.keys, owner: this.owner, token: this.token };
  }

  again() {
    this.#check();
    this.#count += 1;
    return this;
  }

  async renew(lease = this.claim.lease) {
    const length = duration('lease', lease, 1);
    this.#check();
    const sent = now();
    const session = this.#session;
    const line = words.renew(this.claim, length);
    try {
      await insist(session, this.claim, line, sent + session.timeout, () => this.#over());
    } catch (error) {
      const reason = error instanceof RefusedError && GONE[error.code];
      if (!reason) throw error;
      this.#lose(reason);
    }
    this.#check();
    session.leases.add({ lease: length, watchdog: this.claim.watchdog });
    session.leases.remove(this.claim);
    this.claim.lease = length;
    if (!this.claim.watchdog) this.#endsAt(sent + length);
  }

  async release() {
    this.#look();
    if (this.#count > 1) {
      this.#count -= 1;
      if (this.#lost) throw this.#lost;
      return;
    }
    await this._end();
  }

  /** Node before 20.5 has no such symbol; then this is a property that nobody uses. */
  async [Symbol.asyncDispose]() {
    await this.release();
  }

  /** Ends it, however often it was taken again. */
  async _end() {
    if (this.#count === 0) return;
    this.#count = 0;
    if (this.#lost) throw this.#lost;
    this.#forget();
    try {
      await this.#session.release(this);
    } finally {
      this.#deaf();
    }
    // Notified before the reply.
    if (this.#lost) throw this.#lost;
  }

  /** A message with its tag. @param {string} word @param {string} rest */
  notified(word, rest) {
    if (word !== 'lost') return;
    const { link } = this;
    // Another server has it now, and does not know that it is over.
    if (rest === 'demoted' || rest === 'moved') this.#giveBack(rest);
    else this.#lose(rest);
    if (rest === 'demoted') link?.close(new Refusal('READONLY the server was demoted'));
  }

  /**
   * On a new channel: asks whether the hold is still there, and subscribes to its loss. Its end
   * stays where it is; that of one with watchdog is the server's.
   * @param {Link} link
   */
  _regain(link) {
    this.link = link;
    this.#tag = link.tag(this);
    const { claim } = this;
    const left = claim.watchdog || !this.#alarm ? claim.lease : Math.min(Math.max(Math.ceil(this.#alarm.at - now()), 1), claim.lease);
    link.call([...words.renew(claim, left), 'NOTIFY', link.channel, this.#tag]).catch((error) => {
      const reason = error instanceof Refusal && GONE[error.code];
      if (reason) this.#lose(reason);
      else if (this.#session.elsewhere(error) && error.code !== 'CLUSTERDOWN') this.#giveBack('moved');
    });
  }

  /** The connection is gone. */
  _cut() {
    this.link = undefined;
    this.outlived = true;
    if (this.claim.watchdog) this.#giveBack('connection');
  }

  _close() {
    this.#giveBack('closed');
  }

  /** Lost to the program, and released if the server holds it still. @param {string} reason */
  #giveBack(reason) {
    this.#lose(reason, true);
    this.#session.callOff(this.claim, false);
  }

  /** @param {string} reason @param {boolean} [back] it is released too */
  #lose(reason, back) {
    if (this.#lost) return;
    this.#lost = new LostError(this.claim.keys, reason);
    if (this.#count === 0) return; // its release is on the way, and will see it
    this.#forget();
    this.#deaf();
    // Of several keys one was lost: nobody counts on the others any more, and a job may ask for them.
    if (this.claim.keys.length > 1 && !back) this.#session.callOff(this.claim, false);
    // Its listeners are the program's: they run when all here is done, and are not waited for.
    queueMicrotask(() => this.#controller?.abort(this.#lost));
  }

  #forget() {
    this.#alarm?.clear();
    this.#session.holds.delete(this);
    for (const key of this.claim.keys) if (this.#session.held.get(key) === this) this.#session.held.delete(key);
    this.#session.leases.remove(this.claim);
    this.#session.keep();
    this.#job?._free(this.claim.keys);
  }

  #deaf() {
    this.link?.tags.delete(this.#tag);
  }

  /** @param {number} deadline */
  #endsAt(deadline) {
    this.#alarm?.clear();
    this.#alarm = new Alarm(deadline, () => this.#giveBack('lease'));
  }

  /** The program may have kept the event loop busy beyond the end: then the timer is late. */
  #look() {
    if (!this.#lost && this.#count > 0 && this.#alarm && this.#alarm.at <= now()) this.#alarm.ring();
  }

  #over() {
    this.#look();
    return this.#lost ?? (this.#count === 0 ? new LostError(this.claim.keys, 'released') : null);
  }

  #check() {
    const over = this.#over();
    if (over) throw over;
  }
}


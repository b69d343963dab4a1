// One acquisition under way: asked for on each connection anew, until it is a hold or over.
import { LostError, NotAcquiredError, fromServer } from './errors.js';
import { Held } from './held.js';
import { Closed, Refusal } from './refusal.js';
import { heed } from './signals.js';
import { ANSWER, Alarm, now } from './time.js';
import { Wanted } from './wanted.js';
import * as words from './words.js';

/** @import { Claim, Plan } from './options.js' */
/** @import { Job } from './locks.js' */
/** @import { Link } from './link.js' */
/** @import { Session } from './session.js' */

// The server's own word on the end of a wait comes first; nothing else says that somebody has it.
const GRACE = 1000;
// Until a server that has just started, and grants nothing yet, is asked again.
const NOT_YET = 500;

export class Request {
  /** @type {Link | undefined} the connection on which it was asked */
  link = undefined;
  tag = '';
  asked = 0;
  /** When the wait is over. */
  until = 0;
  /** When there was no answer from the server for too long. */
  patience = 0;
  /** The server said QUEUED on this connection. */
  queued = false;
  /** The server has granted it, and it is not with the program yet. */
  granted = false;
  over = false;
  /** @type {string | undefined} a loss that was notified before the reply was read */
  lostBefore = undefined;
  /** It was asked on a connection that is gone. */
  before = false;
  /** Its grant is to say whether somebody waits for it. */
  asks = false;
  /** @type {(() => void) | undefined} */
  onqueued = undefined;
  /** @type {Wanted | undefined} that, once it was asked or said */
  wanted = undefined;

  /** @param {Session} session @param {Plan} plan @param {string} owner @param {Job | undefined} job */
  constructor(session, plan, owner, job) {
    const { keys, lease, watchdog, max, mode, limit, permits, acks, acksTimeout } = plan;
    /** @type {Claim} */
    this.claim = { keys, owner, lease, watchdog, max, mode, limit, permits, acks, acksTimeout };
    this.session = session;
    this.plan = plan;
    this.job = job;
  }

  /** @template T @param {(held: Held) => T} as  what the program has of it @returns {Promise<T>} */
  run(as) {
    return new Promise((resolve, reject) => {
      this.as = as;
      this.resolve = /** @type {(it: unknown) => void} */ (resolve);
      this.reject = reject;
      const { plan, session } = this;
      session.leases.add(plan);
      try {
        if (plan.signal) this.unheed = heed(plan.signal, (reason) => this.giveUp(reason));
      } catch (error) {
        return this.#fail(error); // with its reason, or what the program's own signal has thrown
      }
      const began = now();
      this.until = began + plan.wait;
      this.patience = Math.max(this.until, began + session.timeout);
      session.add(this);
      if (this.until !== Infinity && !this.over) this.#watch(plan.waits ? this.until : this.patience);
    });
  }

  /** @param {number} at */
  #watch(at) {
    this.alarm = new Alarm(at, () => this.#timeUp(), ANSWER);
  }

  #timeUp() {
    const time = now();
    if (this.granted) return this.#watch(time + GRACE); // in case the connection breaks meanwhile
    if (this.queued && time < this.until + GRACE) return this.#watch(this.until + GRACE);
    if (this.queued) return this.giveUp(this.session.unreachable());
    if (time >= this.patience) return this.giveUp(this.session.unreachable());
    this.#watch(this.patience);
  }

  ask() {
    const { link } = this.session;
    if (!link || this.over) return;
    if (this.job) this.session.settle(this.claim);
    this.link = link;
    this.queued = this.granted = false;
    if (this.job && link.plain && !this.asked) this.claim.owner = this.job._freshOwner();
    this.lostBefore = undefined;
    this.wanted = this.asks ? new Wanted() : undefined;
    this.asked = now();
    const tag = (this.tag = link.tag(this));
    const line = this.#words(link, tag);
    link.call(line).then(
      (reply) => this.tag === tag && this.#replied(reply),
      (error) => this.tag === tag && this.#refused(line, error),
    );
  }

  /** @param {Link} link @param {string} tag */
  #words(link, tag) {
    const { plan } = this;
    // No more than was asked for: the sum of a very long time and the clock's is rounded.
    const left = Math.min(Math.max(Math.ceil(this.until - this.asked), 1), plan.wait);
    /** @type {(string | number)[]} */
    const rest = plan.waits ? ['QUEUE', this.until === Infinity ? 0 : left] : [];
    rest.push('NOTIFY', link.channel, tag, 'ONCE');
    if (plan.watchdog) rest.push('WATCHDOG');
    if (this.asks && this.wanted?.mayAsk(this.claim, link)) rest.push('WANTED');
    return words.acquire(this.claim, rest);
  }

  /** @param {unknown} reply */
  #replied(reply) {
    if (this.over || this.granted) return;
    this.session.answered();
    if (reply === 'QUEUED') {
      this.queued = true;
      this.onqueued?.();
    } else if (reply === null) this.#fail(this.#notAcquired());
    else if (typeof reply === 'number') this.#granted(reply, this.asked);
    else this.link?.close(new Error('a reply belongs to another command'));
  }

  /** @param {(string | number)[]} line @param {Error} error */
  #refused(line, error) {
    if (error instanceof Closed || this.over) return; // asked for again on the next connection
    const refusal = /** @type {Refusal} */ (error);
    if (refusal.isSyntax && this.link?.refusesHints(line, refusal)) {
      this.#unasked();
      return this.ask();
    }
    this.#failed(refusal);
  }

  /** A message with its tag. @param {string} word @param {string} rest @param {number} [since] */
  notified(word, rest, since) {
    if (this.over) return;
    if (word === 'granted') {
      const [token, also] = rest.split(' ', 2);
      if (also === 'wanted') this.#isWanted();
      return this.granted || this.#granted(Number(token), since);
    }
    if (word === 'wanted') this.#isWanted();
    if (word === 'timeout') return this.#fail(this.#notAcquired());
    if (word === 'lost') return this.#lost(rest);
    if (word !== 'error') return;
    const refusal = new Refusal(rest);
    if (refusal.noMaster) this.link?.close(refusal);
    else this.#failed(refusal);
  }

  #isWanted() {
    this.wanted ??= new Wanted();
    this.wanted.said();
  }

  /** @param {Refusal} refusal */
  async #failed(refusal) {
    const { tag } = this;
    const notYet = refusal.code === 'NOTYET';
    if (refusal.code === 'SUPERSEDED' && this.before) {
      this.before = false; // by what it said on a connection that is gone, and that came late
      this.#unasked();
      return this.ask();
    }
    if (!notYet && !this.session.redirect(refusal, this)) {
      await this.session.findChannel(refusal);
      // Otherwise it is asked for again, or over.
      if (this.tag === tag && !this.over) this.#fail(fromServer(refusal.message));
      return;
    }
    this.#unasked();
    if (notYet) new Alarm(now() + NOT_YET, () => this.tag || this.ask());
  }

  /** It is neither asked for nor granted, on no connection. */
  #unasked() {
    this.link?.tags.delete(this.tag);
    this.link = undefined;
    this.tag = '';
    this.queued = this.granted = false;
  }

  /** Another node of the cluster has the slot. @param {Session} to */
  moveTo(to) {
    this.session.leases.remove(this.claim);
    this.session.remove(this);
    this.session = to;
    to.leases.add(this.claim);
    to.add(this);
  }

  #notAcquired() {
    const { keys } = this.claim;
    for (const key of keys) {
      const own = this.session.held.get(key);
      if (own) return new NotAcquiredError(keys, { key, owner: own.claim.owner });
    }
    return new NotAcquiredError(keys);
  }

  /** It was granted and is lost again, before the program had it. @param {string} reason */
  #lost(reason) {
    if (reason === 'demoted') return this.link?.close(new Refusal('READONLY the server was demoted'));
    if (this.granted) this.#fail(new LostError(this.claim.keys, reason));
    else this.lostBefore = reason;
  }

  /**
   * @param {number} token
   * @param {number | undefined} since  when it was asked for, if that is known
   */
  #granted(token, since) {
    this.granted = true;
    if (this.lostBefore !== undefined) return this.#lost(this.lostBefore);
    const { acks, watchdog } = this.plan;
    if (acks || (!watchdog && since === undefined)) this.#prove(token, since);
    else this.#give(token, since);
  }

  /** Only then it is the program's. @param {number} token @param {number | undefined} since */
  async #prove(token, since) {
    const { link, plan } = this;
    try {
      if (!plan.watchdog) since ??= await this.#renewed();
      if (plan.acks) {
        const renewed = await this.session.acks.wait(this.claim, plan, () => this.over || this.link !== link);
        since = Math.max(since ?? 0, renewed);
      }
    } catch (error) {
      // Where the connection is gone it is asked for again; where the program is, it was cancelled.
      if (this.over || this.link !== link || error instanceof Closed) return;
      this.session.callOff(this.claim, false);
      return this.#fail(/** @type {Error} */ (error));
    }
    if (!this.over && this.link === link) this.#give(token, since);
  }

  /** @param {number} token @param {number | undefined} since */
  #give(token, since) {
    if (!this.link) return;
    this.#end();
    const held = new Held(this, token, since);
    this.link.tags.set(this.tag, held);
    this.resolve?.(this.as?.(held));
  }

  /** How old the lease is nobody knows after a wait: it begins anew. @returns {Promise<number>} */
  async #renewed() {
    const sent = now();
    try {
      await this.link?.call(words.renew(this.claim, this.claim.lease));
    } catch (error) {
      const gone = error instanceof Refusal && error.code === 'NOTHELD';
      if (gone) throw new LostError(this.claim.keys, 'expired');
      throw error instanceof Refusal ? fromServer(error.message) : error;
    }
    return sent;
  }

  /** The connection is gone. */
  cut() {
    this.before ||= this.link !== undefined;
    this.#unasked();
    if (now() >= this.patience) this.giveUp(this.session.unreachable());
  }

  /** The program does not want it any more: the server is notified; a grant on its way is released. @param {unknown} error */
  giveUp(error) {
    if (this.over) return;
    const { link, tag } = this;
    this.#fail(error);
    // What was asked on a connection that is gone may still wait in the server.
    if (link ?? this.asked) this.session.callOff(this.claim, this.plan.waits);
    link?.tags.delete(tag);
  }

  /** @param {unknown} error */
  #fail(error) {
    this.#end();
    this.link?.tags.delete(this.tag);
    this.job?._free(this.claim.keys);
    this.session.leases.remove(this.claim);
    this.reject?.(error);
  }

  #end() {
    this.over = true;
    this.alarm?.clear();
    this.session.remove(this);
    this.unheed?.();
  }
}

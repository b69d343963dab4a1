// What an acquisition became, from its grant to its end, as its session has it.
import { ConnectionError, LostError, RefusedError, fromServer } from './errors.js';
import { insist } from './insist.js';
import { Refusal } from './refusal.js';
import { ANSWER, Alarm, now, suspended } from './time.js';
import { Wanted } from './wanted.js';
import * as words from './words.js';

/** @import { Link } from './link.js' */
/** @import { Request } from './request.js' */
/** @import { Session } from './session.js' */
/** @import { Stay } from './stay.js' */

// What the server says when there is no such hold, and why it was lost then.
/** @type {Record<string, string | undefined>} */
const GONE = { NOTHELD: 'expired', WRONGTYPE: 'overwritten' };

export class Held {
  /** The program has released it. */
  over = false;
  /** @type {((lost: LostError) => void) | undefined} */
  onlost = undefined;
  /** @type {Stay | undefined} of a sticky lock */
  stay = undefined;
  /** @type {LostError | null} */
  #lost = null;
  /** @type {Alarm | undefined} for the deadline */
  #alarm;
  /** For how long the machine had been suspended when the deadline was set. */
  #slept = 0;
  /** @type {Alarm | undefined} */
  #max;
  /** @type {Wanted | undefined} made when the program first asks */
  #wanted;
  /** @type {number[] | undefined} the leases that renewals under way ask for */
  #renewals;
  #tag;

  /**
   * @param {Request} request @param {number} token
   * @param {number | undefined} since  when the lease began, at the latest
   */
  constructor({ session, link, tag, claim, job, wanted }, token, since) {
    this.token = token;
    this.session = session;
    /** @type {Link | undefined} on which its loss is notified */
    this.link = link;
    /** The connection that took it is gone. */
    this.outlived = false;
    this.#tag = tag;
    this.claim = claim;
    this.job = job;
    this.granted = now();
    this.#wanted = wanted;
    /** It is for this client to renew it: the server has no module whose watchdog would. */
    this.renewed = claim.watchdog && link?.plain !== undefined;
    /** When that is to be done next. */
    this.due = Infinity;
    this.#enter(session);
    if (claim.max) this.#max = new Alarm(now() + claim.max, () => this.#giveBack('max'));
    if ((this.renewed || !claim.watchdog) && since !== undefined) this.#endsAt(since + claim.lease);
  }

  get lost() {
    this.#look();
    return this.#lost;
  }

  get wanted() {
    const wanted = this.#listen();
    return this.isHeld && wanted.is(this.claim.lease);
  }

  /** Whether the server has ever said that somebody waits for it. */
  get wasWanted() {
    return this.#wanted?.was ?? false;
  }

  /** @param {AbortSignal | undefined} signal */
  async untilWanted(signal) {
    if (!this.isHeld) return false;
    const wanted = this.#listen();
    return wanted.is(this.claim.lease) || wanted.wait(signal);
  }

  /** From now on the server says whether somebody waits. */
  #listen() {
    this.#wanted ??= new Wanted();
    this.#wanted.ask(this);
    return this.#wanted;
  }

  /** @param {number} length */
  async renew(length) {
    this.check();
    const sent = now();
    const { session } = this;
    const line = words.renew(this.claim, length);
    // A shorter lease begins when the server has it, whether or not its reply comes.
    if (this.#alarm && sent + length < this.#alarm.at) this.#endsAt(sent + length);
    const renewals = (this.#renewals ??= []);
    renewals.push(length);
    try {
      await insist(session, this.claim, line, sent + session.timeout, () => this.#over());
    } catch (error) {
      if (!(error instanceof RefusedError && this.missed(error.code))) throw error;
    } finally {
      renewals.splice(renewals.indexOf(length), 1);
    }
    this.check();
    session.leases.add({ lease: length, watchdog: this.claim.watchdog });
    session.leases.remove(this.claim);
    this.claim.lease = length;
    if (this.renewed || !this.claim.watchdog) this.#endsAt(sent + length);
  }

  /** Asks once for a greater token than all before. @returns {Promise<number>} */
  newToken() {
    return new Promise((resolve, reject) => {
      const { link, claim, session } = this;
      const late = new Alarm(now() + session.timeout, () => reject(new ConnectionError('no answer to the renewal')), ANSWER);
      const fails = (/** @type {unknown} */ error) => {
        late.clear();
        if (error instanceof Refusal) reject(this.missed(error.code) ? this.#lost : fromServer(error.message));
        else reject(this.#lost ?? session.unreachable());
      };
      if (!link) return fails(undefined);
      link.call([...words.renew(claim, claim.lease), 'TOKEN']).then((token) => {
        late.clear();
        resolve(Number(token));
      }, fails);
    });
  }

  /** Never throws. @returns {Promise<void>} */
  release() {
    if (this.over) return Promise.resolve();
    this.over = true;
    if (this.#lost) return Promise.reject(this.#lost);
    return new Promise((resolve, reject) => this.letGo((error) => (error ? reject(error) : resolve())));
  }

  /** It is over. @param {(error: Error | null) => void} done  may be called again */
  letGo(done) {
    this.over = true;
    this.session.release(this, (error) => {
      this.#deaf();
      done(error ?? this.#lost); // which was notified before the reply
    });
    this.#forget();
  }

  /** It was let go in vain: it comes back as no other one. */
  forgo() {
    const lost = (this.#lost ??= new LostError(this.claim.keys, 'released'));
    queueMicrotask(() => this.onlost?.(lost));
  }

  /** A message with its tag. @param {string} word @param {string} rest */
  notified(word, rest) {
    if (word === 'wanted') {
      (this.#wanted ??= new Wanted()).said();
      this.stay?.wanted();
    }
    if (word !== 'lost') return;
    // Its job asks anew, behind its release, which the server has not taken: it was not lost before that.
    if (this.over && rest === 'rebound') return;
    const { link } = this;
    // Another server has it now, and does not know that it is over.
    if (rest === 'demoted' || rest === 'moved') this.#giveBack(rest);
    else this.#lose(rest);
    if (rest === 'demoted') link?.close(new Refusal('READONLY the server was demoted'));
  }

  /** On a new channel: asks whether the hold is still there, and subscribes to its loss. @param {Link} link */
  regain(link) {
    this.link = link;
    this.#tag = link.tag(this);
    this.#subscribe(link);
  }

  /** @param {Link} link */
  #subscribe(link) {
    // Of several keys it watches none that it did not give: this client goes on to renew those.
    this.#renew(link, this.subscription(link, this.renewed && !this.isOfMany));
  }

  /**
   * The command that has the server notify of it. Its end stays where it is; that of one with watchdog is the
   * server's, or moves with each renewal.
   * @param {Link} link @param {boolean} watch
   */
  subscription(link, watch) {
    const { claim } = this;
    const asked = this.#renewals?.at(-1); // which this must not undo
    const left = this.#alarm && Math.min(Math.max(Math.ceil(this.#alarm.at - now()), 1), claim.lease);
    const lease = claim.watchdog || !left ? (asked ?? claim.lease) : Math.max(left, asked ?? 0);
    const line = [...words.renew(claim, lease), 'NOTIFY', link.channel, this.#tag];
    if (watch) line.push('WATCHDOG');
    if (this.#wanted?.mayAsk(claim, link)) line.push('WANTED');
    return line;
  }

  /** Renews it, in the place of a watchdog. */
  keepUp() {
    const { link, claim } = this;
    this.due = now() + claim.lease / 3;
    this.#look();
    if (link && !this.#lost) this.#renew(link, words.renew(claim, claim.lease));
  }

  /** @param {Link} link @param {(string | number)[]} line */
  async #renew(link, line) {
    const sent = now();
    const slept = suspended();
    const { lease } = this.claim;
    try {
      await link.call(line);
    } catch (error) {
      if (error instanceof Refusal && this.missed(error.code)) return;
      if (link.refusesHints(line, error) && this.isHeld) this.#subscribe(link);
      else if (this.session.elsewhere(error)) this.#elsewhere(error);
      return; // anything else may pass before its deadline
    }
    if (!this.renewed || this.#lost || this.over) return;
    if (link.plain || this.isOfMany) this.#endsAt(sent + lease, slept);
    else this.#watched();
  }

  /** @param {Refusal} refusal */
  #elsewhere({ code }) {
    // Nobody there knows of its watchdog; but a lease that is renewed moves with the slot.
    if (this.renewed) this.session.cluster?.movedHold(this.session, this);
    else if (code !== 'CLUSTERDOWN') this.#giveBack('moved');
  }

  /** The server's module renews it from now on. */
  #watched() {
    this.renewed = false;
    this.#alarm?.clear();
    this.#alarm = undefined;
    this.session.renewals.delete(this);
  }

  /** Its release found that it was lost before, if that is what this code says. @param {string} code */
  missed(code) {
    const reason = this.#gone(code);
    if (reason) this.#lose(reason);
    return reason !== undefined;
  }

  /** @param {string} code what the server says when there is no such hold @returns {string | undefined} why it was lost */
  #gone(code) {
    return code === 'NOTHELD' && this.renewed ? 'deleted' : GONE[code];
  }

  /** The connection is gone. What this client renews goes on, on the next one. */
  cut() {
    this.link = undefined;
    this.outlived = true;
    if (this.claim.watchdog && !this.renewed) this.#giveBack('connection');
  }

  /** Another node of the cluster has its slot. @param {Session} to */
  moveTo(to) {
    this.#leave();
    this.#enter(to);
    to.leases.add(this.claim);
    if (this.renewed) to.renewals.add(this);
    to.adopt(this);
  }

  close() {
    this.#giveBack('closed');
  }

  /** Lost to the program, and released if the server holds it still. @param {string} reason */
  #giveBack(reason) {
    this.#lose(reason, true);
    this.session.callOff(this.claim, false);
  }

  /** @param {string} reason @param {boolean} [back] it is released too */
  #lose(reason, back) {
    if (this.#lost) return;
    const lost = (this.#lost = new LostError(this.claim.keys, reason));
    if (this.over) return; // its release is on the way, and will see it
    this.stay?.lost();
    this.#forget();
    this.#deaf();
    // Of several keys one was lost: nobody counts on the others any more, and a job may ask for them.
    if (this.isOfMany && !back) this.session.callOff(this.claim, false);
    // Its listeners are the program's: they run when all here is done, and are not waited for.
    queueMicrotask(() => this.onlost?.(lost));
  }

  #forget() {
    this.#alarm?.clear();
    this.#max?.clear();
    this.#wanted?.over();
    this.#leave();
    this.job?._free(this.claim.keys);
  }

  /** @param {Session} session */
  #enter(session) {
    this.session = session;
    session.holds.add(this);
    for (const key of this.claim.keys) session.held.set(key, this);
    session.keep();
  }

  #leave() {
    const session = this.session;
    session.holds.delete(this);
    session.renewals.delete(this);
    for (const key of this.claim.keys) if (session.held.get(key) === this) session.held.delete(key);
    session.leases.remove(this.claim);
    session.keep();
  }

  #deaf() {
    this.link?.tags.delete(this.#tag);
  }

  /** @param {number} deadline @param {number} [slept]  for how long the machine had been suspended when the lease began */
  #endsAt(deadline, slept = suspended()) {
    this.#alarm?.clear();
    this.#alarm = new Alarm(deadline, () => this.#giveBack('lease'));
    this.#slept = slept;
    if (!this.renewed) return;
    this.due = deadline - (this.claim.lease * 2) / 3;
    this.session.renewals.add(this);
  }

  /** The program may have kept the event loop busy beyond the end: then the timer is late. */
  #look() {
    const slept = suspended() - this.#slept;
    for (const [alarm, at] of /** @type {const} */ ([[this.#alarm, now() + slept], [this.#max, now()]])) {
      if (!this.#lost && !this.over && alarm && alarm.at <= at) alarm.ring();
    }
  }

  get isOfMany() {
    return this.claim.keys.length > 1;
  }

  get isHeld() {
    this.#look();
    return !this.#lost && !this.over;
  }

  #over() {
    this.#look();
    return this.#lost ?? (this.over ? new LostError(this.claim.keys, 'released') : null);
  }

  check() {
    const over = this.#over();
    if (over) throw over;
  }
}


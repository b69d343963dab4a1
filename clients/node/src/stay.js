// What the session has of a sticky lock: the lock itself, who uses it, who waits for it. See "Sticky" in clients/README.md.
//
// A use takes and leaves the lock by itself, as long as nothing speaks against it. Everything else is decided by look():
// whatever has happened, it does what follows. It runs none of the program's code, so nothing comes between.
import { Backoff } from './backoff.js';
import { ConnectionError, LostError, NotAcquiredError } from './errors.js';
import { counted } from './heartbeat.js';
import { freshOwner } from './owner.js';
import { Request } from './request.js';
import { heed } from './signals.js';
import { ANSWER, Alarm, now } from './time.js';

/** @import { Held } from './held.js' */
/** @import { Heartbeat } from './heartbeat.js' */
/** @import { Plan } from './options.js' */
/** @import { Session } from './session.js' */
/** @import { Use } from './sticky.js' */

const LEAST = 20; // ms: so long uses follow each other although somebody else waits
export const MOST = 1000; // then it goes back although nobody says that he waits: who polls is to have a chance
const PAUSE = 10; // of that length

/**
 * @typedef {object} Home  the locks that it is of
 * @property {(keys: string[]) => Session | Promise<Session>} sessionOf
 * @property {Set<Stay>} stays  those that are here, or that a use waits for
 * @property {number} timeout
 * @property {AbortSignal} end  of the locks
 */

/** A use that waits for its turn. */
class Waiting {
  over = false;
  overdue = false;
  /** @type {Alarm | undefined} */
  alarm;
  /** @type {(() => void) | undefined} */
  unheed;

  /** @param {Use} use @param {(use: Use) => void} resolve @param {(error: unknown) => void} reject */
  constructor(use, resolve, reject) {
    this.use = use;
    this.resolve = resolve;
    this.reject = reject;
  }
}

export class Stay {
  /** @type {Use | undefined} who has the lock in this program */
  user = undefined;
  /** @type {Set<Waiting>} in their order */
  line = new Set();
  // Until then a use needs to ask nobody, should the connection be proved: by the monotonic clock, which stands still while the
  // machine is suspended, and by the time of day. 0: look() comes first.
  until = 0;
  untilDay = 0;
  /** @type {Heartbeat | undefined} of the connection on which its loss is notified */
  beat = undefined;
  /** @type {Held | undefined} */
  held = undefined;
  /** When the last use ended. */
  used = 0;
  /** @type {Request | undefined} under way */
  #request;
  /** @type {object | undefined} of which acquisition what is under way is a part */
  #attempt;
  /** @type {Session | undefined} where it was asked for last */
  #session;
  #most = 0; // when it has been here for MOST
  #mostDay = 0;
  #pause = -Infinity; // it is not acquired before
  #served = false; // a use has had it since its grant
  #uses = 0; // that have ended since
  #backoff = new Backoff();
  #read = false; // its token was read
  #unsure = false; // what its token is nobody knows
  #closed = false;
  /** @type {Promise<void>} when the server has answered to its last release */
  #gone = Promise.resolve();
  #proves = false;
  /** @type {(() => void)[]} uses that end, but ask first whether they had it */
  #ends = [];
  /** @type {Alarm | undefined} */
  #alarm;

  /** @param {Home} home @param {Plan} plan @param {number} idle @param {number} wait */
  constructor(home, plan, idle, wait) {
    this.home = home;
    this.plan = plan;
    this.idle = idle;
    this.wait = wait;
    /** For so long a proof of the connection is good. */
    this.half = counted(plan) / 2;
  }

  get key() {
    return this.plan.keys[0];
  }

  /** Begins a use without a message, if that may be. @param {Use} use */
  take(use) {
    const at = now();
    const day = Date.now();
    if (this.user || this.line.size || !this.#isAhead(at, day) || !this.#isProvedBy(at, day)) return false;
    this.user = use;
    return true;
  }

  /** @param {number} at @param {number} day */
  #isAhead(at, day) {
    return at < this.until && day < this.untilDay;
  }

  /** @param {number} at @param {number} day */
  #isProvedBy(at, day) {
    const { beat, half } = this;
    return beat !== undefined && at < beat.proof + half && day < beat.day + half;
  }

  get #isProved() {
    return this.#isProvedBy(now(), Date.now());
  }

  /** @param {Use} use @param {AbortSignal | undefined} signal @returns {Promise<Use>} when it has the lock */
  begin(use, signal) {
    return new Promise((resolve, reject) => {
      const waiting = new Waiting(use, resolve, reject);
      if (this.home.end.aborted) throw this.home.end.reason;
      if (this.#closed) throw new ConnectionError(`the sticky lock of ${this.key} is closed`);
      if (signal) waiting.unheed = heed(signal, (reason) => this.#leave(waiting, reason));
      this.home.stays.add(this);
      this.line.add(waiting);
      const began = now();
      const last = Math.max(began + this.wait, began + this.home.timeout); // without a word of the server
      waiting.alarm = new Alarm(began + this.wait, () => this.#overdue(waiting, last), ANSWER);
      this.look();
    });
  }

  /** The use gives it to the next one. @returns {LostError | null | Promise<LostError | null>} why it had not the lock to its end @param {Use} use */
  end(use) {
    const at = (this.used = now());
    this.#uses += 1;
    const day = Date.now();
    const proved = this.#isProvedBy(at, day);
    if (proved && this.#isAhead(at, day)) {
      this.user = undefined;
      if (this.line.size) this.look();
      return null;
    }
    const { held } = use;
    if (held.lost || held.over || proved) return this.#end(held);
    // Nothing was heard for too long: the program was stopped, say.
    return new Promise((resolve) => {
      this.#ends.push(() => resolve(this.#end(held)));
      this.look();
    });
  }

  /** @param {Held} held */
  #end({ lost }) {
    this.user = undefined;
    this.look();
    return lost;
  }

  /** Does what follows from what there is. While a use has the lock that is nothing: when it ends it looks again. */
  look() {
    this.#mark();
    if (!this.user) this.#decide();
    if (this.#ends.length) {
      if (this.#isAway || this.#isProved) for (const end of this.#ends.splice(0)) end();
      else this.#prove();
    }
    this.#mark();
    this.#wind();
    if (!this.held && !this.#attempt && !this.line.size) this.home.stays.delete(this);
  }

  #mark() {
    if (this.#isAway || this.#leaves()) this.until = 0;
    this.beat = this.held?.link?.heartbeat ?? this.beat;
  }

  #decide() {
    if (this.held && this.#isAway) this.held = undefined;
    else if (this.#leaves()) this.#goBack();
    const [first] = this.line;
    if (!first) return;
    if (!this.held) {
      if (!this.#attempt && now() >= this.#pause) this.#acquire();
    } else if (this.#isProved) this.#give(first);
    else this.#prove();
  }

  /** It was lost, or never had. */
  get #isAway() {
    return !this.held || this.held.over || this.held.lost !== null;
  }

  get #isOld() {
    return now() >= this.#most || Date.now() >= this.#mostDay;
  }

  /** Whether it goes back when no use has it. */
  #leaves() {
    const { held } = this;
    if (!held || this.#isAway) return false;
    const alone = this.line.size === 0;
    if (this.#closed || this.#unsure || (alone && this.#backoff.left)) return true;
    if (!held.link?.hints) return this.#served || alone; // nobody would say that somebody waits
    if (held.wasWanted) return alone || (this.#served && now() >= held.granted + LEAST);
    if (this.#isOld) return alone || this.#served;
    return alone && !this.user && now() >= this.used + this.idle;
  }

  /** If it is acquired again at once, that goes out in the same write. */
  #goBack() {
    const { held } = this;
    if (!held) return;
    this.#backoff.wentBack(this.#uses, held.wasWanted);
    if (!held.wasWanted && this.#isOld) {
      this.#pause = now() + PAUSE;
      setTimeout(() => this.look(), PAUSE + 1); // which keeps the process alive
    }
    this.held = undefined;
    this.#gone = new Promise((done) => held.letGo(() => done()));
  }

  #acquire() {
    const attempt = (this.#attempt = {});
    /** @param {unknown} error */
    const fails = (error) => {
      if (this.#attempt !== attempt) return;
      this.#attempt = this.#request = undefined;
      this.#leaveAll(error);
      this.look();
    };
    const there = this.home.sessionOf(this.plan.keys);
    if (!(there instanceof Promise)) this.#ask(there, attempt, fails);
    else there.then((session) => this.#attempt === attempt && this.#ask(session, attempt, fails), fails);
  }

  /** @param {Session} session @param {object} attempt @param {(error: unknown) => void} fails */
  #ask(session, attempt, fails) {
    this.#session = session;
    const request = (this.#request = new Request(session, this.plan, freshOwner(), undefined));
    request.asks = true;
    request.onqueued = () => this.#attempt === attempt && this.#stands();
    request.run((held) => this.#attempt === attempt && this.#came(held)).catch(fails);
  }

  /** @param {Held} held */
  #came(held) {
    this.#attempt = this.#request = undefined;
    this.held = held;
    held.stay = this;
    held.outlived = true; // by which token it ends nobody need know: its owner has nothing else
    this.used = now();
    this.#served = this.#read = this.#unsure = false;
    this.#uses = 0;
    this.until = this.#most = now() + MOST;
    this.untilDay = this.#mostDay = Date.now() + MOST;
    this.look();
  }

  /** Somebody waits for it. */
  wanted() {
    this.look();
  }

  /** It is lost. What is told of that to others is on its way: this looks when all is done. */
  lost() {
    this.until = 0;
    queueMicrotask(() => this.look());
  }

  /** @param {Waiting} waiting */
  #give(waiting) {
    const { use } = waiting;
    this.#served = true;
    use.held = /** @type {Held} */ (this.held);
    this.user = use;
    this.#out(waiting).resolve(use);
  }

  /** What the server has said of the lock until now is read before its answer. */
  #prove() {
    const link = this.held?.link;
    if (this.#proves || !link) return;
    this.#proves = true;
    const answered = () => {
      this.#proves = false;
      this.look();
    };
    link.send(['PING']).then(answered, answered);
  }

  // Those who wait.

  /** @param {Waiting} waiting */
  #out(waiting) {
    this.line.delete(waiting);
    waiting.over = true;
    waiting.alarm?.clear();
    waiting.unheed?.();
    return waiting;
  }

  /** @param {Waiting} waiting @param {unknown} error */
  #leave(waiting, error) {
    if (waiting.over) return;
    this.#out(waiting).reject(error);
    this.#callOff(error);
    this.look();
  }

  /** @param {unknown} error */
  #leaveAll(error) {
    for (const waiting of [...this.line]) this.#out(waiting).reject(error);
    this.#callOff(error);
  }

  /** Of a request that nobody waits for. @param {unknown} error */
  #callOff(error) {
    if (this.line.size || !this.#attempt) return;
    const request = this.#request;
    this.#attempt = this.#request = undefined;
    request?.giveUp(error);
  }

  /** @param {Waiting} waiting @param {number} last */
  #overdue(waiting, last) {
    if (waiting.over) return;
    waiting.overdue = true;
    const error = this.#notAcquired();
    if (error) this.#leave(waiting, error);
    else if (now() < last) waiting.alarm = new Alarm(last, () => this.#overdue(waiting, last), ANSWER);
    else this.#leave(waiting, this.#session?.unreachable() ?? new ConnectionError('no connection to the server: no answer'));
  }

  /** If the server has said that somebody has it, or one of ours uses it. */
  #notAcquired() {
    const { keys } = this.plan;
    const [key] = keys;
    const own = this.user?.held ?? (this.#request?.queued ? this.#session?.held.get(key) : undefined);
    if (own) return new NotAcquiredError(keys, { key, owner: own.claim.owner });
    return this.#request?.queued ? new NotAcquiredError(keys) : undefined;
  }

  /** The server has said that somebody else has it: so much is known for whose time is over. */
  #stands() {
    for (const waiting of [...this.line]) if (waiting.overdue) this.#overdue(waiting, -Infinity);
  }

  /** When to look again. */
  #wind() {
    if (this.#isAway || this.#alarm) return;
    const busy = this.user || this.line.size;
    const at = busy ? now() + Math.max(this.idle, 10) : Math.min(this.used + this.idle, this.#most);
    this.#alarm = new Alarm(at, () => {
      this.#alarm = undefined;
      this.look();
    });
  }

  /** No use begins any more. @returns {Promise<void>} when the server has answered to the release; at once if a use is under way */
  close() {
    this.#closed = true;
    this.#leaveAll(new ConnectionError(`the sticky lock of ${this.key} is closed`));
    const { user } = this;
    this.look();
    return user ? Promise.resolve() : this.#gone;
  }

  /** The locks are closed. */
  locksClosed() {
    this.#leaveAll(this.home.end.reason);
    this.look();
  }

  // Tokens.

  /** The acquisition's is for the first use that reads it. Each other one asks for a new one. @param {Use} use @returns {Promise<number>} */
  async token(use) {
    const { held } = use;
    held.check();
    if (this.user !== use) throw new LostError(this.plan.keys, 'released');
    if (!this.#read) {
      this.#read = true;
      return held.token;
    }
    try {
      return await held.newToken();
    } catch (error) {
      if (this.held === held) this.#unsure = true;
      this.look();
      throw error;
    }
  }
}

// The waits of one session for one lock, on a server without the module: only the first of them tries.
import { named, near } from './library.js';
import { Closed, Refusal } from './refusal.js';
import { Alarm, now } from './time.js';

/** @import { Call } from './library.js' */
/** @import { Plain } from './plain.js' */

const CHANNEL = 'redisson_lock__channel';
// Who has waited so long takes a place in the lock's queue, and keeps it for so long after each try.
const SHORT = 100;
const KEPT = 2000;
// Messages can be lost: so often it tries without any, and to keep a place. A reply may be late of a try that
// came before a release: so often it tries without it, too.
const PATIENT = 700;
const PLACED = 500;
// Who has no place gets no message when permits come back: from one try to the next, and as much again by chance.
const PERMITS = 50;
// So long it listens on when nobody waits any more: a busy lock is not subscribed to for each wait.
const LINGER = 5000;

/** A fifth more or less, so that not all try at once. @param {number} ms */
const about = (ms) => ms * (0.8 + 0.4 * Math.random());

/** One request that waits. */
export class Wait {
  over = false;
  began = now();
  until = Infinity;
  /** @type {Alarm | undefined} */
  #alarm;

  /**
   * @param {Line} line @param {Call} call
   * @param {(reply: unknown) => void} reply  the first word of it; what comes later is a message
   * @param {(error: unknown) => void} refuse
   * @param {() => void} gone
   */
  constructor(line, call, reply, refuse, gone) {
    this.line = line;
    this.call = call;
    this.reply = reply;
    this.refuse = refuse;
    this.gone = gone;
    this.queued = false;
    if (!call.wait) return;
    this.until = this.began + call.wait;
    this.#alarm = new Alarm(this.until, () => line.end(this));
  }

  queue() {
    this.queued = true;
    this.reply('QUEUED');
  }

  /** @param {number} token @param {number} since  when the try was sent */
  granted(token, since) {
    if (!this.leave()) return;
    if (this.queued) this.#notify('granted', String(token), since);
    else this.reply(token);
  }

  timeout() {
    if (!this.leave()) return;
    if (this.queued) this.#notify('timeout', '');
    else this.reply(null);
  }

  /** @param {unknown} error */
  failed(error) {
    if (!this.leave()) return;
    // Of a connection that is closed there are no messages.
    if (this.queued) this.#notify('error', /** @type {Error} */ (error).message);
    else this.refuse(error);
  }

  /** @param {string} word @param {string} rest @param {number} [since] */
  #notify(word, rest, since) {
    this.line.plain.link.notify(this.call.tag, word, rest, since);
  }

  /** It is over; whether it was not before. */
  leave() {
    if (this.over) return false;
    this.over = true;
    this.#alarm?.clear();
    this.line.waits.delete(this);
    this.gone();
    return true;
  }
}

export class Line {
  /** @type {Set<Wait>} */
  waits = new Set();
  /** How many places are before that of this line; -1: it has none. */
  #ahead = -1;
  /** Others have places: who wants the lock stands behind them at once. */
  #crowded = false;
  #trying = false;
  #again = false;
  /** How often it has tried. */
  #tries = 0;
  /** @type {Alarm | undefined} the next try, or the end of a line that is empty */
  #next;
  /** @type {(() => void)[]} */
  #empties = [];
  /** @type {Set<string>} */
  #heard = new Set();

  /** @param {Plain} plain @param {string} kind @param {Call} call */
  constructor(plain, kind, { keys, args: [owner, , mode] }) {
    this.plain = plain;
    this.kind = kind;
    this.place = plain.places.take(kind);
    this.permits = mode === 'LIMIT';
    const shared = mode === 'READ' || mode === 'WRITE';
    // In a cluster those of odd names lie elsewhere: they have no messages.
    const heard = keys.filter((key) => !plain.link.cluster || near(key));
    this.channels = heard.map((key) => named(shared ? 'redisson_rwlock' : CHANNEL, key));
    // Of several locks at once there is no place.
    this.own = keys.length > 1 ? [] : heard.map((key) => `${named(CHANNEL, key)}:${this.place.name}`);
    /** @type {Call} */
    this.cancel = { command: 'CANCEL', keys, args: [owner, ...(shared ? [mode] : []), ...(this.permits ? ['PERMITS'] : [])], tag: '', wait: undefined };
  }

  /** @param {Wait} wait */
  join(wait) {
    this.waits.add(wait);
    this.#left();
    if (this.waits.size > 1) wait.queue();
    else this.woken();
  }

  get #first() {
    return this.waits.values().next().value;
  }

  /** It may be worth a try. */
  woken() {
    if (this.#trying) this.#again = true;
    else if (this.waits.size) this.#try();
  }

  /** One has left it. Comes to an end when the line keeps no place that nobody needs. @returns {Promise<void>} */
  left() {
    return new Promise((done) => {
      if (this.waits.size) done();
      else this.#empties.push(done);
      if (this.#trying) this.#again = true;
      else this.#try();
    });
  }

  #left() {
    for (const done of this.#empties.splice(0)) done();
  }

  async #try() {
    const wait = this.#first;
    this.#next?.clear();
    if (!wait) return this.#empty();
    this.#again = false;
    this.#trying = true;
    const number = ++this.#tries;
    const sent = now();
    this.#next = new Alarm(sent + about(PATIENT), () => this.#late());
    const last = sent >= wait.until;
    // With the last try it gives its place up, unless others of this line can use it.
    const wants = this.#crowded || this.place.until > sent || sent - wait.began >= SHORT;
    const stays = wants && !(last && this.waits.size === 1);
    // From now on, whether there is a reply or not.
    if (stays && this.own.length) this.place.until = sent + KEPT;
    let left = -1;
    try {
      const reply = await this.plain.ask(wait.call, ['PLACE', this.place.name, stays ? KEPT : 0], () => wait.over);
      if (typeof reply === 'number') {
        this.#crowded &&= this.#ahead >= 0;
        this.#ahead = -1;
        this.place.until = 0;
        wait.granted(reply, sent);
        if (number !== this.#tries) return;
      } else {
        if (number !== this.#tries) return;
        [left, this.#ahead] = /** @type {number[]} */ (reply).map(Number);
        if (this.#ahead < 0) this.place.until = 0;
        // Without a place: how many others have one, and one more.
        if (this.#ahead !== 0) this.#crowded = this.#ahead !== -1 && this.own.length > 0;
        if (last) wait.timeout();
        else if (!wait.queued) wait.queue();
      }
    } catch (error) {
      // What a later one says counts.
      if (number !== this.#tries) return;
      this.#ahead = -1;
      // All are asked for on the next connection, or at another node. The place goes with them.
      if (error instanceof Closed) return this.stop();
      if (error instanceof Refusal && error.elsewhere) return this.#move(error);
      this.place.until = 0;
      wait.failed(error);
    }
    this.#trying = false;
    this.#next?.clear();
    // What was freed before it listened, nobody has told it; and a queue is not to be waited for.
    const soon = wait.over || this.#listen() || (this.#crowded && !stays);
    if (soon || this.#again) this.#try();
    else this.#later(wait, left);
  }

  /** There is no reply. */
  #late() {
    if (this.waits.size) this.#try();
    else this.#next = new Alarm(now() + PATIENT, () => this.#late());
  }

  /** Listens to what concerns it now; whether that is more than before. */
  #listen() {
    const wanted = new Set(this.#ahead >= 0 || this.#crowded ? this.own : [...this.channels, ...this.own]);
    for (const channel of this.#heard) if (!wanted.has(channel)) this.#unhear(channel);
    const known = this.#heard.size;
    for (const channel of wanted) {
      if (!this.#heard.has(channel)) this.plain.hear(this, channel);
      this.#heard.add(channel);
    }
    return this.#heard.size > known;
  }

  /** @param {string} channel */
  #unhear(channel) {
    this.#heard.delete(channel);
    this.plain.unhear(this, channel);
  }

  /** @param {Wait} wait the first @param {number} left  ms until the lock can be free without a message, or -1 */
  #later(wait, left) {
    const time = now();
    const placed = this.#ahead >= 0;
    let at = time + about(placed ? PLACED : PATIENT);
    if (this.permits && !placed) at = time + PERMITS * (1 + Math.random());
    if (wait.began + SHORT > time) at = Math.min(at, wait.began + SHORT);
    // Where others are before it, that is for them to see to.
    if (left >= 0 && this.#ahead <= 0) at = Math.min(at, time + left);
    this.#next = new Alarm(at, () => this.woken());
  }

  /** The time of one is over. Only the server can say that it was in vain. @param {Wait} wait */
  async end(wait) {
    if (wait === this.#first) return this.woken();
    const sent = now();
    try {
      const reply = await this.plain.ask(wait.call, [], () => wait.over);
      if (typeof reply === 'number') wait.granted(reply, sent);
      else wait.timeout();
    } catch (error) {
      wait.failed(error);
    }
    if (!this.waits.size) this.left();
  }

  /** Nobody waits any more. */
  #empty() {
    const given = this.#ahead >= 0 && this.plain.ask(this.cancel, ['PLACE', this.place.name]).catch(() => {});
    this.#ahead = -1;
    this.place.until = 0;
    if (given) given.then(() => this.#left());
    else this.#left();
    if (!this.#heard.size) return this.plain.forget(this);
    this.#next = new Alarm(now() + LINGER, () => this.#leaveOff());
  }

  #leaveOff() {
    for (const channel of [...this.#heard]) this.#unhear(channel);
    this.plain.forget(this);
  }

  /** The slot of the lock is elsewhere, and the place with it. @param {Refusal} error */
  #move(error) {
    this.#leaveOff();
    this.#end(error);
  }

  /** All its waits go on in another line. @param {Error} error */
  #end(error) {
    this.#next?.clear();
    this.#left();
    if (this.waits.size) this.plain.places.leave(this.kind, this.place);
    for (const wait of [...this.waits]) wait.failed(error);
  }

  /** @param {Error} error */
  fail(error) {
    for (const wait of [...this.waits]) wait.failed(error);
    this.left();
  }

  stop() {
    this.#end(new Closed());
  }
}

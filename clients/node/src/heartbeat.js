// The one timer of a session: every third of the shortest lease it tells the server that this program
// is alive, and for how long it may be silent (RLOCK.HEARTBEAT), and says PING. A reply proves the
// connection from the time at which its command was sent. When the last proof is older than
// the shortest lease, the connection is closed.
import { unknownCommand } from './backend.js';
import { Refusal } from './refusal.js';
import { FARTHEST, now } from './time.js';

/** @import { Link } from './link.js' */
/** @typedef {{lease: number, watchdog: boolean}} Lease */

// With nothing held and nobody waiting: every 10 s.
const IDLE = 30_000;
// A shorter lease counts as one of so long: no network answers as soon as that for certain, and
// with the connection all other holds would be lost too. One without the watchdog does not end with it.
const LEAST = 100;
const LEAST_PLAIN = 5000;
// A server looks some ten times a second who is silent.
const LEAST_PATIENCE = 300;
// A timer that is so late was kept by a pause of the process, or by what else it did.
const LATE = 100;

/** @param {Lease} of */
export const counted = ({ lease, watchdog }) => Math.max(lease, watchdog ? LEAST : LEAST_PLAIN);

/** The leases of a session's holds and requests: which is the shortest, and which with the watchdog the longest? */
export class Leases {
  /** @type {Map<number, number>} by lease: how many with the watchdog have it */
  #watched = new Map();
  /** @type {Map<number, number>} ... and how many without */
  #plain = new Map();
  shortest = IDLE;
  longest = LEAST_PATIENCE;
  onshorter = () => {};
  onlonger = () => {};

  /** @param {Lease} given */
  add(given) {
    const lease = counted(given);
    const many = given.watchdog ? this.#watched : this.#plain;
    many.set(lease, (many.get(lease) ?? 0) + 1);
    const longer = given.watchdog && lease > this.longest;
    if (longer) this.longest = lease;
    if (lease < this.shortest) {
      this.shortest = lease;
      this.onshorter();
    }
    if (longer) this.onlonger();
  }

  /** @param {Lease} given */
  remove(given) {
    const lease = counted(given);
    const many = given.watchdog ? this.#watched : this.#plain;
    const left = (many.get(lease) ?? 1) - 1;
    if (left > 0) many.set(lease, left);
    else many.delete(lease);
  }

  /** Looks again, from time to time: most leases that end are followed by others of the same length. */
  recount() {
    this.shortest = this.#watched.size || this.#plain.size ? Infinity : IDLE;
    this.longest = LEAST_PATIENCE;
    for (const lease of this.#plain.keys()) this.shortest = Math.min(this.shortest, lease);
    for (const lease of this.#watched.keys()) {
      this.shortest = Math.min(this.shortest, lease);
      this.longest = Math.max(this.longest, lease);
    }
    return this.shortest;
  }
}

export class Heartbeat {
  #pings = 0;
  due = 0;
  /** Whose proof was given more time. */
  spared = -1;
  /** For how long the server knows that this program may be silent. */
  told = Infinity;

  /** @param {Link} link @param {Leases} leases @param {number} patience  Infinity: the server is not told */
  constructor(link, leases, patience) {
    this.link = link;
    this.leases = leases;
    // Only the module takes anything from who is silent.
    this.patience = link.backend?.kind === 'module' ? patience : Infinity;
    this.proof = this.since = this.pinged = now();
    this.day = Date.now(); // of the proof, for who has to count the time of a suspended machine
    this.shortest = leases.recount();
    this.closeAt = this.proof + this.shortest;
    leases.onshorter = () => this.#shorter();
    leases.onlonger = () => this.#longer();
    this.#tell();
    this.#wind();
  }

  get #third() {
    return this.shortest / 3;
  }

  /** A command was answered that was sent then. @param {number} sent @param {number} day  the same by the time of day */
  proven(sent, day) {
    if (sent <= this.proof) return;
    this.proof = sent;
    this.day = day;
    this.closeAt = Math.max(sent, this.since) + this.shortest;
  }

  #shorter() {
    // What was proven before may be older than the new lease: that begins only now.
    this.shortest = this.leases.shortest;
    this.since = now();
    this.closeAt = Math.min(this.closeAt, this.since + this.shortest);
    this.#ping();
    this.#wind();
  }

  /** A hold may be silent for as long as its lease at least. */
  #longer() {
    if (this.leases.longest > this.told) this.#tell();
  }

  /** Leases may have ended since the last time. */
  #recount() {
    const shortest = this.leases.recount();
    if (shortest === this.shortest) return;
    this.shortest = shortest;
    this.closeAt = Math.max(this.proof, this.since) + shortest;
  }

  #wind() {
    clearTimeout(this.timer);
    this.due = Math.min(this.pinged + this.#third, this.closeAt);
    this.timer = setTimeout(() => this.#tick(), Math.min(Math.max(this.due - now(), 1), FARTHEST));
    this.timer.unref();
  }

  #tick() {
    const time = now();
    if (time < this.due) return this.#wind();
    const late = time - this.due;
    this.#recount();
    // This process itself was paused, or its event loop blocked: the replies may lie unread, and so may the
    // news that the connection was closed. Read them first, and leave the server a third to answer. After a
    // short time once, until something is answered: a loop that is always late keeps no dead connection.
    const spares = late > LATE && time >= this.closeAt && this.spared !== this.proof;
    if (spares) this.spared = this.proof;
    if (spares || late > this.#third) this.closeAt = Math.max(this.closeAt, time + this.#third);
    if (time >= this.closeAt) {
      return this.link.close(new Error(`no answer from the server for ${this.shortest} ms`));
    }
    if (time >= this.pinged + this.#third) {
      this.#ping();
      this.onbeat?.();
    }
    this.#wind();
  }

  /** @type {(() => void) | undefined} */
  onbeat = undefined;

  /**
   * Each PING says another word, so that a reply which belongs to another command is noticed. One that
   * is refused, by a server that is busy with a script or to a user who may not, is answered too.
   */
  #ping() {
    this.pinged = now();
    this.#tell();
    const word = `beat:${++this.#pings}`;
    this.link.call(['PING', word]).then(
      (reply) => {
        if (reply !== word) this.link.close(new Error('a reply belongs to another command'));
      },
      () => {},
    );
  }

  /**
   * The event loop turns: this program is alive, and may be silent for so long. A server that is too
   * old for that, or does not let this user say it, has the PINGs alone on this connection.
   */
  #tell() {
    if (this.patience === Infinity) return;
    this.told = Math.max(this.patience, this.leases.longest);
    this.link.send(['RLOCK.HEARTBEAT', this.told]).catch((error) => {
      const never = error instanceof Refusal && (error.code === 'NOPERM' || unknownCommand(error));
      if (never) this.patience = this.told = Infinity;
    });
  }

  stop() {
    clearTimeout(this.timer);
    this.leases.onshorter = this.leases.onlonger = () => {};
  }
}

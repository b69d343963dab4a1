// The one timer of a session: a PING every third of the shortest lease. A reply proves the
// connection from the time at which its command was sent. When the last proof is older than
// the shortest lease, the connection is closed.
import { FARTHEST, now } from './time.js';

/** @import { Link } from './link.js' */
/** @typedef {{lease: number, watchdog: boolean}} Lease */

// With nothing held and nobody waiting: a PING every 10 s.
const IDLE = 30_000;
// A shorter lease counts as one of so long: no network answers as soon as that for certain, and
// with the connection all other holds would be lost too. One without the watchdog does not end with it.
const LEAST = 100;
const LEAST_PLAIN = 5000;
// A timer that is so late was kept by a pause of the process, or by what else it did.
const LATE = 100;

/** @param {Lease} of */
const counted = ({ lease, watchdog }) => Math.max(lease, watchdog ? LEAST : LEAST_PLAIN);

/** The leases of a session's holds and requests: which is the shortest? */
export class Leases {
  /** @type {Map<number, number>} by lease: how many have it */
  #many = new Map();
  shortest = IDLE;
  onshorter = () => {};

  /** @param {Lease} given */
  add(given) {
    const lease = counted(given);
    this.#many.set(lease, (this.#many.get(lease) ?? 0) + 1);
    if (lease >= this.shortest) return;
    this.shortest = lease;
    this.onshorter();
  }

  /** @param {Lease} given */
  remove(given) {
    const lease = counted(given);
    const left = (this.#many.get(lease) ?? 1) - 1;
    if (left > 0) this.#many.set(lease, left);
    else this.#many.delete(lease);
  }

  /** Looks again, from time to time: most leases that end are followed by others as short. */
  recount() {
    this.shortest = this.#many.size ? Infinity : IDLE;
    for (const lease of this.#many.keys()) this.shortest = Math.min(this.shortest, lease);
    return this.shortest;
  }
}

export class Heartbeat {
  #pings = 0;
  due = 0;
  /** Whose proof was given more time. */
  spared = -1;

  /** @param {Link} link @param {Leases} leases */
  constructor(link, leases) {
    this.link = link;
    this.leases = leases;
    this.proof = this.since = this.pinged = now();
    this.shortest = leases.recount();
    this.closeAt = this.proof + this.shortest;
    leases.onshorter = () => this.#shorter();
    this.#wind();
  }

  get #third() {
    return this.shortest / 3;
  }

  /** @param {number} sent a command was answered that was sent then */
  proven(sent) {
    if (sent <= this.proof) return;
    this.proof = sent;
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

  /** Leases may have ended since the last time. */
  #longer() {
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
    this.#longer();
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
    const word = `beat:${++this.#pings}`;
    this.link.call(['PING', word]).then(
      (reply) => {
        if (reply !== word) this.link.close(new Error('a reply belongs to another command'));
      },
      () => {},
    );
  }

  stop() {
    clearTimeout(this.timer);
    this.leases.onshorter = () => {};
  }
}

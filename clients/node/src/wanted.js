// Whether somebody waits for a hold, as the server says it to whoever has asked (WANTED).
import { Refusal } from './refusal.js';
import { heed } from './signals.js';
import { Alarm, now } from './time.js';

/** @import { Claim } from './options.js' */
/** @import { Held } from './held.js' */
/** @import { Link } from './link.js' */

// Until a server is asked again that could not do what it was asked.
const LATER = 1000;

export class Wanted {
  /** When the server last said so. */
  #said = -Infinity;
  /** @type {Set<(wanted: boolean) => void>} who waits for that */
  #waits = new Set();
  /** @type {Link | undefined} the connection on which it was asked to */
  #asked;

  /** Has the server asked, once on each connection. @param {Held} hold */
  ask(hold) {
    const { link, claim } = hold;
    if (!link || this.#asked === link || !hold.isHeld || !this.mayAsk(claim, link)) return;
    const line = hold.subscription(link, claim.watchdog);
    link.call(line).catch((error) => {
      if (!(error instanceof Refusal) || hold.missed(error.code) || link.refusesHints(line, error)) return;
      new Alarm(now() + LATER, () => {
        if (this.#asked === link) this.#asked = undefined;
        this.ask(hold);
      });
    });
  }

  /** Whether a command on this connection can ask: it does, then. @param {Claim} claim @param {Link} link */
  mayAsk({ keys }, link) {
    const may = link.hints && keys.length === 1; // MRENEW does not know the word
    if (may) this.#asked = link;
    return may;
  }

  /** Nobody says that it is so no longer: what was said is good for half a lease. @param {number} lease */
  is(lease) {
    return now() - this.#said < lease / 2;
  }

  /** Whether it ever has. */
  get was() {
    return this.#said > -Infinity;
  }

  /** The server says so. */
  said() {
    this.#said = now();
    this.#end(true);
  }

  /** The hold is over. */
  over() {
    this.#end(false);
  }

  /** @param {boolean} wanted */
  #end(wanted) {
    for (const end of this.#waits) end(wanted);
  }

  /** Until the server says so, or the hold is over. @param {AbortSignal | undefined} signal @returns {Promise<boolean>} */
  wait(signal) {
    return new Promise((resolve, reject) => {
      const end = (/** @type {boolean} */ wanted) => {
        this.#waits.delete(end);
        unheed?.();
        resolve(wanted);
      };
      const unheed = signal && heed(signal, (reason) => {
        this.#waits.delete(end);
        reject(reason);
      });
      this.#waits.add(end);
    });
  }
}

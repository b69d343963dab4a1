// Whether somebody waits for a hold, as the server says it to whoever has asked (WANTED).
import { heed } from './signals.js';
import { now } from './time.js';

/** @import { Link } from './link.js' */

export class Wanted {
  /** When the server last said so. */
  #said = -Infinity;
  /** @type {Set<(wanted: boolean) => void>} who waits for that */
  #waits = new Set();
  /** @type {Link | undefined} the connection on which it was asked to */
  asked = undefined;

  /** Nobody says that it is so no longer: what was said is good for half a lease. @param {number} lease */
  is(lease) {
    return now() - this.#said < lease / 2;
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

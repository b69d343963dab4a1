// What the module's watchdog does, on a server without it: one timer renews the holds of a session.
import { now } from './time.js';

/** @import { Held } from './held.js' */

export class Renewals {
  /** @type {Set<Held>} */
  #holds = new Set();
  #at = Infinity;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /** @param {Held} hold */
  add(hold) {
    this.#holds.add(hold);
    this.wind(hold.due);
  }

  /** @param {Held} hold */
  delete(hold) {
    this.#holds.delete(hold);
  }

  /** One is due by then. @param {number} at */
  wind(at) {
    if (at >= this.#at) return;
    clearTimeout(this.#timer);
    this.#at = at;
    this.#timer = setTimeout(() => this.#tick(), Math.max(at - now(), 0));
    this.#timer.unref();
  }

  #tick() {
    this.#at = Infinity;
    const time = now();
    let next = Infinity;
    for (const hold of this.#holds) {
      // What is due soon goes along.
      if (hold.due - hold.claim.lease / 30 <= time) hold.keepUp();
      next = Math.min(next, hold.due);
    }
    this.wind(next);
  }
}

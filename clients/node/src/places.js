// The places in queues that outlive the connection on which they were taken. Who asks again on
// the next one would else stand behind its own old place, which nobody keeps, until that has run out.
import { uuid } from './random.js';
import { now } from './time.js';

/**
 * @typedef {object} Place
 * @property {string} name
 * @property {number} until  then the server has forgotten it; 0: it has not been taken
 */

export class Places {
  /** @type {Map<string, Place>} by keys and kind: those whose line is gone, while its waits go on */
  #left = new Map();

  /** That which a line had on another connection, or a new one. @param {string} kind @returns {Place} */
  take(kind) {
    const left = this.#left.get(kind);
    this.#left.delete(kind);
    return left && left.until > now() ? left : { name: uuid(), until: 0 };
  }

  /** @param {string} kind @param {Place} place */
  leave(kind, place) {
    const time = now();
    for (const [each, { until }] of this.#left) if (until <= time) this.#left.delete(each);
    if (place.until > time) this.#left.set(kind, place);
  }
}

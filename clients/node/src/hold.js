// A lock that the program has. Members that begin with _ are not the program's.
import { duration, known } from './options.js';
import { checkSignal } from './signals.js';

/** @import { Held } from './held.js' */

export class Hold {
  #held;
  /** How often it was taken again. */
  #more = 0;
  /** @type {AbortController | undefined} made when it is asked for: most holds end without */
  #controller;

  /** @param {Held} held */
  constructor(held) {
    this.#held = held;
  }

  get token() {
    return this.#held.token;
  }

  get key() {
    return this.#held.claim.keys[0];
  }

  get keys() {
    return [...this.#held.claim.keys];
  }

  get owner() {
    return this.#held.claim.owner;
  }

  get lost() {
    return this.#held.lost;
  }

  get signal() {
    const controller = (this.#controller ??= new AbortController());
    this.#held.onlost ??= (lost) => controller.abort(lost);
    if (this.lost) controller.abort(this.lost);
    return controller.signal;
  }

  get wanted() {
    return this.#held.wanted;
  }

  /** @param {{signal?: AbortSignal}} [options] */
  async untilWanted(options = {}) {
    known(options, ['signal']);
    const { signal } = options;
    checkSignal(signal);
    signal?.throwIfAborted();
    return this.#held.untilWanted(signal);
  }

  /** What a log shows of it. */
  toJSON() {
    return { keys: this.keys, owner: this.owner, token: this.token };
  }

  again() {
    this.#held.check();
    this.#more += 1;
    return this;
  }

  async renew(lease = this.#held.claim.lease) {
    return this.#held.renew(duration('lease', lease, 1));
  }

  release() {
    const { lost } = this;
    if (this.#more === 0) return this._end();
    this.#more -= 1;
    return lost ? Promise.reject(lost) : Promise.resolve();
  }

  /** Node before 20.5 has no such symbol; then this is a property that nobody uses. */
  async [Symbol.asyncDispose]() {
    await this.release();
  }

  /** Ends it, however often it was taken again. Never throws. @returns {Promise<void>} */
  _end() {
    this.#more = 0;
    return this.#held.release();
  }
}

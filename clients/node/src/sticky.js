// A lock that stays with the program between its uses, as the program has it. Members that begin with _ are not the program's.
import { LostError } from './errors.js';
import { arrange, known, stickyPlan } from './options.js';
import { checkSignal } from './signals.js';
import { Stay } from './stay.js';

/** @import { Held } from './held.js' */
/** @import { Home } from './stay.js' */
/** @import { StickyOptions, UseOptions } from '../index.d.ts' */

/** What the body of a use has of the lock. */
export class Use {
  /** @type {AbortController | undefined} made when it is asked for */
  _controller = undefined;
  /** @type {Promise<number> | undefined} */
  _token = undefined;

  /** @param {Stay} stay @param {Held | undefined} held */
  constructor(stay, held) {
    this._stay = stay;
    this.held = /** @type {Held} */ (held); // once it has begun
  }

  get key() {
    return this._stay.key;
  }

  get owner() {
    return this.held.claim.owner;
  }

  get lost() {
    return this.held.lost;
  }

  get signal() {
    const controller = (this._controller ??= new AbortController());
    const { held } = this;
    // Uses follow each other: it is for the one that has the lock.
    held.onlost = (lost) => this._stay.user?._controller?.abort(lost);
    if (held.lost) controller.abort(held.lost);
    return controller.signal;
  }

  /** @returns {Promise<number>} */
  token() {
    if (!this._token) {
      const asked = (this._token = this._stay.token(this));
      asked.catch(() => (this._token = undefined));
    }
    return this._token;
  }

  /** What a log shows of it. */
  toJSON() {
    return { key: this.key, owner: this.owner };
  }
}

export class Sticky {
  #stay;

  /** @param {Home} home @param {string} key @param {StickyOptions} [options] */
  constructor(home, key, options) {
    const { plan, idle, wait } = stickyPlan(key, options);
    this.#stay = new Stay(home, plan, idle, wait);
  }

  get key() {
    return this.#stay.key;
  }

  /**
   * @template T
   * @param {UseOptions | ((use: Use) => T | PromiseLike<T>)} given @param {(use: Use) => T | PromiseLike<T>} [then]
   * @returns {Promise<T>} what the body returns
   */
  async use(given, then) {
    const stay = this.#stay;
    let body = given;
    let signal;
    if (then !== undefined || typeof given !== 'function') {
      const arranged = arrange(/** @type {UseOptions} */ (given), then);
      known(arranged.options, ['signal']);
      ({ signal } = arranged.options);
      checkSignal(signal);
      signal?.throwIfAborted();
      body = arranged.body;
    }
    const use = new Use(stay, stay.held);
    if (!stay.take(use)) await stay.begin(use, signal);
    let result, failure, failed;
    try {
      result = /** @type {(use: Use) => T | PromiseLike<T>} */ (body)(use);
      if (typeof result === 'object' || typeof result === 'function') result = await result; // else there is nothing to wait for
    } catch (error) {
      failed = true;
      failure = error;
    }
    let lost = stay.end(use);
    if (lost) lost = await lost;
    if (lost) {
      // The loss is the news; what else the body had to say goes with it.
      const error = new LostError([stay.key], lost.reason);
      if (failed && failure !== lost) error.cause = failure;
      throw error;
    }
    if (failed) throw failure;
    return /** @type {T} */ (result);
  }

  /** @returns {Promise<void>} */
  close() {
    return this.#stay.close();
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

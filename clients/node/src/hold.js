// A lock that the program has. Members that begin with _ are not the program's.
import { LostError, RlockError } from './errors.js';
import { duration, known, wayPlan } from './options.js';
import { checkSignal } from './signals.js';
import { now } from './time.js';
import { Way } from './way.js';

/** @import { Held } from './held.js' */

/** Once it has given way it is what came of that. */
export class Hold {
  #held;
  /** @type {Way | undefined} while it gives way */
  #way;
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

  /** @param {import('../index.d.ts').GiveWayOptions} [options] */
  async giveWay(options) {
    const { wait, least, signal } = wayPlan(options);
    signal?.throwIfAborted();
    const before = this.#held;
    before.check();
    this.#checkWay();
    if (!before.wanted || now() < before.granted + least) return false;
    this.#way = new Way(before, wait, signal);
    try {
      await this.#way.run((held) => this.#become(held));
    } catch (error) {
      this.#way = undefined;
      throw error;
    }
    return true;
  }

  /** Whether it can give way, whoever waits. */
  #checkWay() {
    const { key } = this;
    if (this.#held.isOfMany) throw new RlockError(`${key}, ...: a hold of several keys cannot give way`);
    if (this.#more) throw new RlockError(`${key} is held by again() too: release that first, for all of them would give way`);
  }

  /** Whoever listens learns of the loss of this one. @param {Held} held */
  #become(held) {
    held.onlost = this.#held.onlost;
    this.#held = held;
    this.#way = undefined;
    if (this.lost) this.#controller?.abort(this.lost);
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
    this.#way?.giveUp(new LostError(this.keys, 'released'));
    return this.#held.release();
  }
}

// A hold gives way: it is released, and acquired anew behind whoever waits.
import { freshOwner } from './owner.js';
import { Request } from './request.js';

/** @import { Held } from './held.js' */

/** @param {Held} held */
const itself = (held) => held;

export class Way {
  /** @type {unknown} why the hold is to be none again */
  #failure = undefined;

  /** @param {Held} before @param {number} wait @param {AbortSignal | undefined} signal */
  constructor(before, wait, signal) {
    const { claim, session, job } = before;
    this.before = before;
    this.request = new Request(session, { ...claim, wait, waits: wait !== 0, signal }, job?.owner ?? freshOwner(), job);
    this.request.asks = true;
  }

  /** Both commands go out at once. Rejects when the hold is over for good. @param {(held: Held) => void} become  what it is then */
  async run(become) {
    const { before, request } = this;
    const released = this.#released();
    request.job?._take(before.claim.keys);
    const granted = request.run(itself);
    try {
      const [held] = await Promise.all([granted, released]);
      if (this.#failure) throw this.#failure;
      become(held);
    } catch (error) {
      granted.then((held) => held.release()).catch(() => {});
      before.forgo();
      throw error;
    }
  }

  /** @returns {Promise<void>} once that is known; never rejects */
  #released() {
    return new Promise((resolve) => {
      this.before.letGo((error) => {
        if (error) this.giveUp(error);
        resolve();
      });
    });
  }

  /** Nothing is to come of it. @param {unknown} error */
  giveUp(error) {
    this.#failure ??= error;
    this.request.giveUp(error);
  }
}

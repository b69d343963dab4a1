// Whether a sticky lock stays. See "Sticky" in clients/README.md, 10.
//
// Where processes alternate, one that stays is called back each time, which costs more than a plain lock.

const ENOUGH = 3; // uses for which it was worth to stay
const LEAST = 4;
const MOST = 64;

export class Backoff {
  /** So many acquisitions do not stay. */
  left = 0;
  #last = 0;

  /** @param {number} uses that it has had @param {boolean} wanted by somebody else */
  wentBack(uses, wanted) {
    if (this.left) this.left -= 1;
    else if (wanted && uses < ENOUGH) this.left = this.#last = Math.min(Math.max(2 * this.#last, LEAST), MOST);
    else this.#last = 0;
  }
}

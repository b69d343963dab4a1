// Holds that n replicas shall have before the program does. WAIT goes by the last write of
// its own connection, and a grant that is pushed is none: so over a second connection to the
// same run of the server, a write that changes nothing for each hold, and one WAIT for all.
import { RefusedError, fromServer } from './errors.js';
import { Link } from './link.js';
import { Refusal } from './refusal.js';
import { ANSWER, Alarm, now } from './time.js';
import * as words from './words.js';

/** @import { Claim } from './options.js' */
/** @import { Session } from './session.js' */

// Longer than this no WAIT holds up that connection: who comes meanwhile is not kept.
const SLICE = 100;

/**
 * @typedef {object} Asked
 * @property {Claim} claim
 * @property {number} need
 * @property {number} ms
 * @property {Link | undefined} link  over which it was renewed
 * @property {number} until  from then on
 * @property {number} renewed  when it was last renewed
 * @property {() => boolean} over  nobody wants it any more
 * @property {(error?: Error) => void} done
 */

export class Acks {
  /** @type {Set<Asked>} */
  #asked = new Set();
  #running = false;
  /** @type {Link | undefined} */
  #link;
  /** @type {Link | undefined} the session's connection that the second one belongs to */
  #beside;

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
  }

  /**
   * Rejects if so many replicas do not have the hold in time.
   * @param {Claim} claim @param {{acks: number, acksTimeout: number}} plan @param {() => boolean} over
   * @returns {Promise<number>} from when on it lasts its lease
   */
  wait(claim, { acks, acksTimeout }, over) {
    return new Promise((resolve, reject) => {
      /** @type {Asked} */
      const asked = { claim, need: acks, ms: acksTimeout, link: undefined, until: 0, renewed: 0, over, done };
      function done(/** @type {Error | undefined} */ error) {
        if (error) reject(error);
        else resolve(asked.renewed);
      }
      this.#asked.add(asked);
      if (!this.#running) this.#run();
    });
  }

  async #run() {
    this.#running = true;
    for (;;) {
      for (const one of this.#asked) if (one.over()) this.#end(one);
      const round = [...this.#asked];
      if (!round.length) break;
      try {
        await this.#round(round);
      } catch (error) {
        this.#link?.close();
        const { message } = this.#link?.why ?? /** @type {Error} */ (error);
        const refused = new RefusedError('NOREPLICAS', `NOREPLICAS nobody can say whether replicas have it: ${message}`);
        for (const one of round) this.#end(one, refused);
      }
    }
    this.#running = false;
  }

  /** @param {Asked} one @param {Error} [error] */
  #end(one, error) {
    if (this.#asked.delete(one)) one.done(error);
  }

  /** One WAIT, until the easiest has what it needs. @param {Asked[]} round */
  async #round(round) {
    const link = await this.#open();
    // Where the server has no watchdog for it yet, nor has it a deadline here, it is renewed meanwhile.
    const fresh = round.filter((one) => one.link !== link || (link.plain && one.renewed + one.claim.lease / 3 < now()));
    const renewed = fresh.map(async (one) => {
      one.link = link;
      one.renewed = now();
      one.until ||= one.renewed + one.ms;
      await link.call(words.renew(one.claim, one.claim.lease)).catch((error) => {
        if (!(error instanceof Refusal)) throw error;
        this.#end(one, fromServer(error.message));
      });
    });
    const need = Math.min(...round.map((one) => one.need));
    const left = Math.min(...round.map((one) => one.until)) - now();
    const ms = Math.min(Math.max(Math.ceil(left), 1), SLICE);
    const [have] = await this.#answered(link, ms, Promise.all([link.call(['WAIT', need, ms]), ...renewed]));
    for (const one of round) {
      const text = `NOREPLICAS ${have} of ${one.need} replicas have it after ${one.ms} ms`;
      if (Number(have) >= one.need) this.#end(one);
      else if (now() >= one.until) this.#end(one, new RefusedError('NOREPLICAS', text));
    }
  }

  /** What has no answer for too long is over, with that connection. @template T @param {Link} link @param {number} ms @param {Promise<T>} answer */
  async #answered(link, ms, answer) {
    const silent = () => link.close(new Error('no answer'));
    const late = new Alarm(now() + ms + this.session.timeout, silent, ANSWER);
    try {
      return await answer;
    } finally {
      late.clear();
    }
  }

  async #open() {
    const beside = this.session.link;
    if (!beside) throw new Error('no connection');
    if (this.#link && !this.#link.closed && this.#beside === beside) return this.#link;
    this.#link?.close();
    const link = (this.#link = new Link(this.session.library, this.session.address, this.session.timeout));
    await link.open(this.session.timeout);
    link.adopt(beside.backend);
    link.connection.keep(false); // the session's connection does that
    const [here, there] = await this.#answered(link, 0, Promise.all([runOf(link), runOf(beside)]));
    if (here !== there) throw new Error('the second connection leads to another server');
    this.#beside = beside;
    return link;
  }

  close() {
    this.#link?.close();
  }
}

/** @param {Link} link */
async function runOf(link) {
  return /^run_id:(\w+)/m.exec(String(await link.call(['INFO', 'server'])))?.[1];
}

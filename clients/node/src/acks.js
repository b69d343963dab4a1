// Holds that n replicas shall have before the program does. WAIT goes by the last write of
// its own connection, and a grant that is pushed is none: so over a second connection to the
// same run of the server, a write that changes nothing for each hold, and one WAIT for all.
import { RefusedError, fromServer } from './errors.js';
import { Link, Refusal } from './link.js';
import * as words from './words.js';

/** @import { Claim } from './options.js' */
/** @import { Session } from './session.js' */

/** @typedef {{claim: Claim, need: number, ms: number, done: () => void, failed: (error: Error) => void}} Asked */

export class Acks {
  /** @type {Asked[]} */
  #asked = [];
  #running = false;
  /** @type {Link | undefined} */
  #link;
  /** @type {Link | undefined} the session's connection that the second one belongs to */
  #beside;

  /** @param {Session} session */
  constructor(session) {
    this.session = session;
  }

  /** Rejects if `need` replicas do not have the hold. @param {Claim} claim @param {number} need @param {number} ms */
  wait(claim, need, ms) {
    return new Promise((done, failed) => {
      this.#asked.push({ claim, need, ms, done: () => done(undefined), failed });
      if (!this.#running) this.#run();
    });
  }

  async #run() {
    this.#running = true;
    while (this.#asked.length) {
      const round = this.#asked;
      this.#asked = [];
      try {
        await this.#round(round);
      } catch (error) {
        this.#link?.close();
        const { message } = /** @type {Error} */ (error);
        const refused = new RefusedError('NOREPLICAS', `NOREPLICAS nobody can say whether replicas have it: ${message}`);
        for (const one of round) one.failed(refused);
      }
    }
    this.#running = false;
  }

  /** @param {Asked[]} round */
  async #round(round) {
    const link = await this.#open();
    const renewed = round.map(async ({ claim, failed }) => {
      await link.call(words.renew(claim, claim.lease)).catch((error) => {
        if (!(error instanceof Refusal)) throw error;
        failed(fromServer(error.message));
      });
    });
    const need = Math.max(...round.map((one) => one.need));
    const ms = Math.max(...round.map((one) => one.ms));
    const [have] = await Promise.all([link.call(['WAIT', need, ms]), ...renewed]);
    for (const one of round) {
      const text = `NOREPLICAS ${have} of ${one.need} replicas have it after ${ms} ms`;
      if (Number(have) >= one.need) one.done();
      else one.failed(new RefusedError('NOREPLICAS', text));
    }
  }

  async #open() {
    const beside = this.session.link;
    if (!beside) throw new Error('no connection');
    if (this.#link && !this.#link.closed && this.#beside === beside) return this.#link;
    this.#link?.close();
    const link = (this.#link = new Link(this.session.library, this.session.address, this.session.timeout));
    await link.open(this.session.timeout);
    link.connection.keep(false); // the session's connection does that
    const [here, there] = await Promise.all([runOf(link), runOf(beside)]);
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

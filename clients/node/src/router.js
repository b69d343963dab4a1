// From key to session.
import { Session } from './session.js';

/** @import { Library } from './libraries.js' */

export class Router {
  /** @param {Library} library @param {number} timeout */
  constructor(library, timeout) {
    this.session = new Session(library, undefined, timeout);
  }

  /** @param {string[]} keys */
  sessionOf(keys) {
    return this.session;
  }

  async close() {
    await this.session.close();
  }
}

// From key to session: on one server there is one.
import { ClusterRouter } from './cluster.js';
import { Session } from './session.js';

/** @import { Library } from './libraries.js' */

/** @param {Library} library @param {number} timeout */
export const routerOf = (library, timeout) =>
  library.seeds ? new ClusterRouter(library, timeout) : new Router(library, timeout);

class Router {
  /** @param {Library} library @param {number} timeout */
  constructor(library, timeout) {
    this.session = new Session(library, undefined, timeout);
  }

  /** @param {string[]} keys @returns {Session | Promise<Session>} */
  sessionOf(keys) {
    return this.session;
  }

  async close() {
    await this.session.close();
  }
}

// From key to session: on one server there is one.
import { ClusterRouter } from './cluster.js';
import { Session } from './session.js';

/** @import { Wanted } from './backend.js' */
/** @import { Library } from './libraries.js' */

/** @param {Library} library @param {number} timeout @param {Wanted} wanted */
export const routerOf = (library, timeout, wanted) =>
  library.seeds ? new ClusterRouter(library, timeout, wanted) : new Router(library, timeout, wanted);

class Router {
  /** @param {Library} library @param {number} timeout @param {Wanted} wanted */
  constructor(library, timeout, wanted) {
    this.session = new Session(library, undefined, timeout, wanted);
  }

  /** @param {string[]} keys @returns {Session | Promise<Session>} */
  sessionOf(keys) {
    return this.session;
  }

  async close() {
    await this.session.close();
  }
}

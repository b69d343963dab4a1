// From key to session: on one server there is one.
import { ClusterRouter } from './cluster.js';
import { Session } from './session.js';

/** @import { Demands } from './backend.js' */
/** @import { Library } from './libraries.js' */

/** @param {Library} library @param {number} timeout @param {Demands} demands */
export const routerOf = (library, timeout, demands) =>
  library.seeds ? new ClusterRouter(library, timeout, demands) : new Router(library, timeout, demands);

class Router {
  /** @param {Library} library @param {number} timeout @param {Demands} demands */
  constructor(library, timeout, demands) {
    this.session = new Session(library, undefined, timeout, demands);
  }

  /** @param {string[]} keys @returns {Session | Promise<Session>} */
  sessionOf(keys) {
    return this.session;
  }

  async close() {
    await this.session.close();
  }
}

// What a program makes once. It owns the session.
import { Demands } from './backend.js';
import { ConnectionError, HeldByJobError, LostError } from './errors.js';
import { Hold } from './hold.js';
import { libraryOf } from './libraries.js';
import { arrange, duration, known, plan } from './options.js';
import { freshOwner } from './owner.js';
import { Request } from './request.js';
import { routerOf } from './router.js';
import { Sticky } from './sticky.js';
import { FARTHEST } from './time.js';

/** @import { AcquireOptions, StickyOptions } from '../index.d.ts' */
/** @import { Held } from './held.js' */
/** @import { Plan } from './options.js' */
/** @import { Session } from './session.js' */
/** @import { Home, Stay } from './stay.js' */

/** @param {Held} held */
const holdOf = (held) => new Hold(held);

/** @typedef {(signal: AbortSignal, hold: Hold) => unknown} Body */

/**
 * @param {Hold} hold @param {Body} body
 * @returns {Promise<any>} what the body returns, once the hold is released
 */
async function within(hold, body) {
  let result, failure, failed;
  try {
    result = await body(hold.signal, hold);
  } catch (error) {
    failed = true;
    failure = error;
  }
  try {
    await hold._end();
  } catch (error) {
    // The loss is the news; what else the body had to say goes with it.
    if (!failed || error instanceof LostError) {
      if (failed && failure !== error) /** @type {Error} */ (error).cause ??= failure;
      throw error;
    }
  }
  if (failed) throw failure;
  return result;
}

/**
 * What the promise gives, unless one of the signals ends first.
 * @template T @param {Promise<T>} promise @param {(AbortSignal | undefined)[]} signals @returns {Promise<T>}
 */
function unless(promise, signals) {
  return new Promise((resolve, reject) => {
    const ends = signals.map((signal) => {
      const end = () => reject(signal?.reason);
      signal?.addEventListener('abort', end);
      return () => signal?.removeEventListener('abort', end);
    });
    promise.then(resolve, reject).finally(() => ends.forEach((end) => end()));
  });
}

class Acquirer {
  /** @param {string | string[]} keys @param {AcquireOptions} [options] @returns {Promise<Hold>} */
  acquire(keys, options) {
    throw new Error('abstract');
  }

  /** @param {string | string[]} keys @param {AcquireOptions | Body} given @param {Body} [then] */
  async using(keys, given, then) {
    const { options, body } = arrange(/** @type {AcquireOptions} */ (given), then);
    return within(await this.acquire(keys, options), body);
  }
}

export class Locks extends Acquirer {
  #router;
  #demands;
  #end = new AbortController();
  /** @type {Home} what sticky locks know of these */
  #home;
  /** @type {Promise<void> | undefined} */
  #closing;

  /** @param {unknown} client @param {{timeout?: number, patience?: number, backend?: 'module'}} [options] */
  constructor(client, options = {}) {
    super();
    known(options, ['timeout', 'patience', 'backend']);
    const { timeout = 5000, patience = 30_000, backend } = options;
    if (backend !== undefined && backend !== 'module') throw new TypeError(`backend can only be 'module': nothing else will do`);
    this.#demands = new Demands(backend, patience === Infinity ? patience : duration('patience', patience, 1));
    // Longer than any timer is for ever.
    const connects = Math.min(duration('timeout', timeout, 1), FARTHEST);
    this.#router = routerOf(libraryOf(client), connects, this.#demands);
    this.#home = { sessionOf: (keys) => this.#router.sessionOf(keys), stays: new Set(), timeout: connects, end: this.#end.signal };
  }

  /** What the server has for locks, as it was last seen; undefined before the first connection. */
  get backend() {
    return this.#demands.found;
  }

  /** @param {string | string[]} keys @param {AcquireOptions} [options] */
  acquire(keys, options) {
    return this._acquire(keys, options, undefined);
  }

  /** @param {string} key @param {StickyOptions} [options] */
  sticky(key, options) {
    return new Sticky(this.#home, key, options);
  }

  job() {
    return new Job(this, freshOwner());
  }

  /** Never throws. @param {string | string[]} keys @param {AcquireOptions | undefined} options @param {Job | undefined} job @returns {Promise<Hold>} */
  _acquire(keys, options, job) {
    try {
      const asked = plan(keys, options);
      this.#end.signal.throwIfAborted();
      asked.signal?.throwIfAborted();
      job?._take(asked.keys);
      const owner = job?.owner ?? freshOwner();
      const session = this.#router.sessionOf(asked.keys);
      if (session instanceof Promise) return this.#acquireAt(session, asked, owner, job);
      return new Request(session, asked, owner, job).run(holdOf);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @param {Promise<Session>} session @param {Plan} plan @param {string} owner @param {Job | undefined} job */
  async #acquireAt(session, plan, owner, job) {
    let there;
    try {
      there = await unless(session, [plan.signal, this.#end.signal]);
    } catch (error) {
      job?._free(plan.keys);
      throw error;
    }
    return new Request(there, plan, owner, job).run(holdOf);
  }

  close() {
    if (!this.#closing) {
      this.#end.abort(new ConnectionError('these locks are closed'));
      for (const stay of [...this.#home.stays]) stay.locksClosed();
      this.#closing = this.#router.close();
    }
    return this.#closing;
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }
}

/** Several holds with one owner, which is what deadlock detection sees. */
export class Job extends Acquirer {
  #locks;
  /** @type {Set<string>} what it holds or waits for */
  #keys = new Set();

  /** @param {Locks} locks @param {string} owner */
  constructor(locks, owner) {
    super();
    this.#locks = locks;
    this.owner = owner;
  }

  /** @param {string | string[]} keys @param {AcquireOptions} [options] */
  acquire(keys, options) {
    return this.#locks._acquire(keys, options, this);
  }

  /** Of one acquisition alone, for a server that cannot tell those of one owner apart. */
  _freshOwner() {
    return freshOwner();
  }

  /** @param {string[]} keys */
  _take(keys) {
    for (const key of keys) if (this.#keys.has(key)) throw new HeldByJobError(key);
    for (const key of keys) this.#keys.add(key);
  }

  /** @param {string[]} keys */
  _free(keys) {
    for (const key of keys) this.#keys.delete(key);
  }
}

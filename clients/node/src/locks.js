// What a program makes once. It owns the session.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { ConnectionError, HeldByJobError, LostError } from './errors.js';
import { libraryOf } from './libraries.js';
import { duration, plan } from './options.js';
import { Request } from './request.js';
import { routerOf } from './router.js';

/** @import { AcquireOptions } from '../index.d.ts' */
/** @import { Hold } from './hold.js' */

const PROCESS = `${hostname()}:${process.pid}`;
const freshOwner = () => `${PROCESS}:${randomUUID()}`;

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

/** How using() is called: the options may be left out. @param {AcquireOptions | Body} options @param {Body} [body] */
function arrange(options, body) {
  const arranged = typeof options === 'function' ? { options: {}, body: options } : { options, body };
  if (typeof arranged.body !== 'function') throw new TypeError('using() takes a function');
  return /** @type {{options: AcquireOptions, body: Body}} */ (arranged);
}

class Acquirer {
  /** @param {string | string[]} keys @param {AcquireOptions} [options] @returns {Promise<Hold>} */
  async acquire(keys, options) {
    throw new Error('abstract');
  }

  /** @param {string | string[]} keys @param {AcquireOptions | Body} given @param {Body} [then] */
  async using(keys, given, then) {
    const { options, body } = arrange(given, then);
    return within(await this.acquire(keys, options), body);
  }
}

export class Locks extends Acquirer {
  #router;
  /** @type {Promise<void> | undefined} */
  #closing;

  /** @param {unknown} client @param {{timeout?: number}} [options] */
  constructor(client, { timeout = 5000 } = {}) {
    super();
    this.#router = routerOf(libraryOf(client), duration('timeout', timeout, 1));
  }

  /** @param {string | string[]} keys @param {AcquireOptions} [options] */
  async acquire(keys, options) {
    return this._acquire(plan(keys, options), freshOwner(), undefined);
  }

  job() {
    return new Job(this, freshOwner());
  }

  /** @param {ReturnType<typeof plan>} plan @param {string} owner @param {Job | undefined} job */
  async _acquire(plan, owner, job) {
    if (this.#closing) throw new ConnectionError('these locks are closed');
    plan.signal?.throwIfAborted();
    job?._take(plan.keys);
    try {
      const session = await this.#router.sessionOf(plan.keys);
      plan.signal?.throwIfAborted();
      if (this.#closing) throw new ConnectionError('these locks are closed');
      return await new Request(session, plan, owner, job).run();
    } catch (error) {
      job?._free(plan.keys);
      throw error;
    }
  }

  close() {
    return (this.#closing ??= this.#router.close());
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
  async acquire(keys, options) {
    return this.#locks._acquire(plan(keys, options), this.owner, this);
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

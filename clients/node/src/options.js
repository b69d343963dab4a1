// What the program asked for, checked before anything is sent.
import { checkSignal } from './signals.js';

/**
 * @typedef {'plain' | 'read' | 'write' | 'permits'} Mode
 * @typedef {{lease: number, watchdog: boolean, max: number | undefined}} Lasting
 * @typedef {{mode: Mode, limit: number, permits: number, acks: number, acksTimeout: number}} Manner
 * @typedef {{keys: string[], owner: string} & Lasting & Manner} Claim
 * @typedef {import('../index.d.ts').AcquireOptions} Options
 * @typedef {ReturnType<typeof plan>} Plan
 */

const OPTIONS = ['wait', 'lease', 'watchdog', 'max', 'mode', 'limit', 'permits', 'acks', 'acksTimeout', 'signal'];
const MOST = Number.MAX_SAFE_INTEGER;
const MOST_KEYS = 1024;
// Of all keys of a request: a server may be set to close a connection that sends 1 MB.
const MOST_BYTES = 2 ** 19;
const MOST_PERMITS = 1_000_000;

/** A word that is none of the options would do nothing. @param {unknown} options @param {string[]} names */
export function known(options, names = OPTIONS) {
  if (typeof options !== 'object' || options === null) throw new TypeError('options must be an object');
  for (const name in options) {
    if (!names.includes(name)) throw new TypeError(`there is no option '${name}'; there are ${names.join(', ')}`);
  }
}

/** A time in ms, rounded up. @param {string} name @param {unknown} value @param {number} least */
export function duration(name, value, least) {
  if (typeof value !== 'number') throw new TypeError(`${name} must be a number of ms`);
  if (!(value >= least && value <= MOST)) {
    throw new RangeError(`${name} must be ${least} to ${MOST} ms, not ${value}`);
  }
  return Math.max(Math.ceil(value), least);
}

/** One that may be for ever. @param {string} name @param {unknown} value */
const endless = (name, value) => (value === Infinity ? value : duration(name, value, 0));

/** @param {string} name @param {unknown} value @param {number} most */
function count(name, value, most) {
  if (typeof value !== 'number') throw new TypeError(`${name} must be a number`);
  if (!(Number.isInteger(value) && value >= 1 && value <= most)) {
    throw new RangeError(`${name} must be a whole number from 1 to ${most}, not ${value}`);
  }
  return value;
}

/** @param {unknown} value */
function keyList(value) {
  const keys = Array.isArray(value) ? [...value] : [value];
  if (!keys.every((key) => typeof key === 'string')) {
    throw new TypeError('a key must be a string, several an array of strings');
  }
  if (!keys.every((key) => key.isWellFormed())) {
    throw new TypeError('a key has half of a surrogate pair, which UTF-8 cannot encode: it would be another key');
  }
  if (keys.includes('')) throw new RangeError('a key must not be empty');
  if (keys.reduce((bytes, key) => bytes + Buffer.byteLength(key), 0) > MOST_BYTES) {
    throw new RangeError(`the keys of a request are at most ${MOST_BYTES} bytes together`);
  }
  if (keys.length < 1 || keys.length > MOST_KEYS) {
    throw new RangeError(`1 to ${MOST_KEYS} keys can be acquired at once, not ${keys.length}`);
  }
  if (new Set(keys).size < keys.length) throw new RangeError('a key is given twice');
  return /** @type {string[]} */ (keys);
}

/** @param {Options} options @param {string[]} keys @returns {Mode} */
function modeOf({ mode, limit, permits }, keys) {
  if (mode !== undefined && mode !== 'read' && mode !== 'write') {
    throw new TypeError(`mode must be 'read' or 'write'`);
  }
  if (mode && limit !== undefined) throw new TypeError('a lock has a mode or a limit, not both');
  if (permits !== undefined && limit === undefined) throw new TypeError('permits need a limit');
  const found = limit !== undefined ? 'permits' : (mode ?? 'plain');
  if (keys.length > 1 && found !== 'plain') {
    throw new TypeError('several keys at once can only be plain locks');
  }
  return found;
}

/** @param {string | string[]} given @param {Options} options */
export function plan(given, options = {}) {
  known(options);
  const keys = keyList(given);
  const { wait, lease = 10_000, watchdog = true, max, limit = 1, permits = 1 } = options;
  const { acks, acksTimeout = 1000, signal } = options;
  checkSignal(signal);
  if (typeof watchdog !== 'boolean') throw new TypeError('watchdog must be true or false');
  if (max !== undefined && !watchdog) throw new TypeError('max is for a hold with watchdog');
  const mode = modeOf(options, keys);
  const most = mode === 'permits' ? count('limit', limit, MOST_PERMITS) : 1;
  return {
    keys,
    mode,
    limit: most,
    permits: count('permits', permits, most),
    lease: duration('lease', lease, 1),
    // A request without a wait tries once.
    waits: wait !== undefined && wait !== 0,
    wait: endless('wait', wait ?? 0),
    watchdog,
    max: max === undefined ? undefined : duration('max', max, 1),
    acks: acks === undefined ? 0 : count('acks', acks, MOST),
    acksTimeout: duration('acksTimeout', acksTimeout, 1),
    signal,
  };
}

/** @param {string} key @param {import('../index.d.ts').StickyOptions} options */
export function stickyPlan(key, options = {}) {
  known(options, ['idle', 'wait', 'lease']);
  if (typeof key !== 'string') throw new TypeError('a sticky lock has one key, a string');
  const { idle = 1000, wait = 30_000, lease } = options;
  const most = duration('idle', idle, 0);
  if (most > 1000) throw new RangeError(`idle must be 0 to 1000 ms, not ${idle}`);
  // Its uses wait for so long, and it for ever.
  return { plan: plan(key, { lease, wait: Infinity }), idle: most, wait: duration('wait', wait, 0) };
}

/**
 * How a scope is called: its options may be left out.
 * @template {object} O @template {(...words: any[]) => unknown} B @param {O | B} options @param {B} [body]
 */
export function arrange(options, body) {
  const arranged = typeof options === 'function' ? { options: {}, body: options } : { options, body };
  if (typeof arranged.body !== 'function') throw new TypeError('the body must be a function');
  return /** @type {{options: O, body: B}} */ (arranged);
}

/** How a hold gives way. @param {import('../index.d.ts').GiveWayOptions} options */
export function wayPlan(options = {}) {
  known(options, ['wait', 'least', 'signal']);
  const { wait = Infinity, least = 20, signal } = options;
  checkSignal(signal);
  return { wait: endless('wait', wait), least: endless('least', least), signal };
}

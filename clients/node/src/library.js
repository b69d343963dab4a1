// The function library, for servers without the module: how a command of the module is called there.
import { tagged } from './slots.js';
import TEXT from './rlock-lua.js';

export { TEXT };
/** The same as a script: without the line that names the library. */
export const SCRIPT = TEXT.slice(TEXT.indexOf('\n') + 1);

/** @typedef {{kind: 'module' | 'functions' | 'script', sha: string}} Backend */

// Of longer keys the lock alone is declared: a request must not become much longer than they are.
const LONG = 4096;
// Keys that belong to a lock, and have to be declared by who may touch them.
const QUEUE = ['rlock1_queue', 'rlock1_places'];
const ALL = ['redisson_lock_token', ...QUEUE];
/** @type {Record<string, string[] | undefined>} */
const TOUCHES = { ACQUIRE: ALL, MACQUIRE: ALL, RELEASE: QUEUE, MRELEASE: QUEUE, CANCEL: QUEUE };

/** The name of what belongs to a lock. @param {string} prefix @param {string} key */
export const named = (prefix, key) => (key.includes('{') ? `${prefix}:${key}` : `${prefix}:{${key}}`);

/** Whether what belongs to the lock lies in its slot. @param {string} key */
export const near = (key) => tagged(named('', key)) === tagged(key);

/**
 * @typedef {object} Call  a command of the module, taken apart for the library
 * @property {string} command
 * @property {string[]} keys
 * @property {string[]} args  from the owner on, without what only the module can do
 * @property {number | undefined} wait  so long in ms, 0 for ever; undefined: not at all
 * @property {string} tag  of whom it notifies
 */

/** @param {(string | number)[]} line @returns {Call} */
export function callOf(line) {
  const words = line.map(String);
  const command = words[0].slice('RLOCK.'.length);
  const [first, count] = command.startsWith('M') ? [2, Number(words[1])] : [1, 1];
  const [owner, ...rest] = words.slice(first + count);
  /** @type {Call} */
  const call = { command, keys: words.slice(first, first + count), args: [owner], wait: undefined, tag: '' };
  for (let at = 0; at < rest.length; at++) {
    if (rest[at] === 'QUEUE') call.wait = Number(rest[++at]);
    else if (rest[at] === 'NOTIFY') call.tag = rest[(at += 2)];
    else if (rest[at] === 'IFTOKEN') at += 1; // each acquisition has an owner of its own
    else if (rest[at] !== 'WATCHDOG') call.args.push(rest[at]);
  }
  return call;
}

/**
 * The words for a server. @param {Backend} backend @param {boolean} cluster @param {Call} call @param {(string | number)[]} more
 */
export function wordsOf({ kind, sha }, cluster, { command, keys, args }, more) {
  const name = `rlock1_${command.toLowerCase()}`;
  const alone = keys.some((key) => key.length > LONG || !near(key));
  const all = alone ? keys : [...keys, ...keys.flatMap((key) => (TOUCHES[command] ?? []).map((name) => named(name, key)))];
  if (kind === 'functions') return ['FCALL', name, all.length, ...all, ...args, ...more];
  // A script cannot ask whether this is a cluster.
  return ['EVALSHA', sha, all.length, ...all, ...(cluster ? ['CLUSTER'] : []), name, ...args, ...more];
}

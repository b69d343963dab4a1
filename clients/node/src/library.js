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
export const near = (key) => !(key.includes('{') || key.includes('}')) || tagged(named('', key)) === tagged(key);

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
  const first = command.startsWith('M') ? 2 : 1;
  const owner = first + (first === 1 ? 1 : Number(words[1]));
  /** @type {Call} */
  const call = { command, keys: words.slice(first, owner), args: [words[owner]], wait: undefined, tag: '' };
  for (let at = owner + 1; at < words.length; at++) {
    const word = words[at];
    if (word === 'QUEUE') call.wait = Number(words[++at]);
    else if (word === 'NOTIFY') call.tag = words[(at += 2)];
    else if (word === 'IFTOKEN') at += 1; // each acquisition has an owner of its own
    else if (word !== 'WATCHDOG') call.args.push(word);
  }
  return call;
}

/** With the keys that are declared. @param {string} command @param {string[]} keys */
function declared(command, keys) {
  const touched = TOUCHES[command];
  if (!touched || keys.some((key) => key.length > LONG || !near(key))) return keys;
  const all = keys.slice();
  for (const key of keys) for (const name of touched) all.push(named(name, key));
  return all;
}

/**
 * The words for a server. @param {Backend} backend @param {boolean} cluster @param {Call} call @param {(string | number)[]} more
 */
export function wordsOf({ kind, sha }, cluster, { command, keys, args }, more) {
  const name = `rlock1_${command.toLowerCase()}`;
  const all = declared(command, keys);
  if (kind === 'functions') return ['FCALL', name, all.length, ...all, ...args, ...more];
  // A script cannot ask whether this is a cluster.
  return ['EVALSHA', sha, all.length, ...all, ...(cluster ? ['CLUSTER'] : []), name, ...args, ...more];
}

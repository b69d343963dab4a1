// What a server has for locks: the module; or, where it cannot be loaded, the library as functions
// or as a script, which this loads.
import { SCRIPT, TEXT } from './library.js';
import { Refusal } from './refusal.js';

/** @import { Backend } from './library.js' */
/** @import { Link } from './link.js' */

// How often a server without the module is asked whether it has come: loading it closes no connection.
export const AGAIN = { every: 60_000 };

const NONE =
  'the server has no rlock module, and this user may not FUNCTION LOAD or SCRIPT LOAD: an administrator runs ' +
  '`redis-cli -x FUNCTION LOAD <rlock.lua`, or gives the user `+fcall +fcall_ro +function|load`';

export const unknownCommand = (/** @type {Refusal} */ { message }) => /^ERR unknown (command|subcommand)/i.test(message);

/** The library is not there, or not any more. @param {unknown} error */
export const unknown = (error) =>
  error instanceof Refusal && (error.code === 'NOSCRIPT' || /^ERR Function not found/i.test(error.message));

/** What the server says, also if that is an error. @param {Link} link @param {...(string | number)} words @returns {Promise<any>} */
async function say(link, ...words) {
  try {
    return await link.send(words);
  } catch (error) {
    // A server that is busy, say, may know more in a moment.
    const known = error instanceof Refusal && ['ERR', 'NOPERM', 'NOSCRIPT', 'OOM'].includes(error.code);
    if (!known) throw error;
    return error;
  }
}

/** @param {Link} link */
export async function hasModule(link) {
  const told = await say(link, 'COMMAND', 'INFO', 'RLOCK.ACQUIRE');
  if (!(told instanceof Refusal)) return Boolean(told?.[0]);
  // Who may not ask: how many arguments there are is looked at before who may run it.
  const tried = await say(link, 'RLOCK.ACQUIRE');
  return !(tried instanceof Refusal && unknownCommand(tried));
}

/** How the library is loaded. @param {Backend['kind']} kind */
export const loading = (kind) => (kind === 'script' ? ['SCRIPT', 'LOAD', SCRIPT] : ['FUNCTION', 'LOAD', TEXT]);

/** @param {Link} link @returns {Promise<Backend>} */
export async function learn(link) {
  if (await hasModule(link)) return { kind: 'module', sha: '' };
  let told = await say(link, 'FCALL_RO', 'rlock1_version', 0);
  if (unknown(told)) {
    told = await say(link, ...loading('functions'));
    if (told instanceof Refusal && /already exists/.test(told.message)) told = 'somebody else did';
  }
  if (!(told instanceof Refusal)) return { kind: 'functions', sha: '' };
  told = await say(link, ...loading('script'));
  if (!(told instanceof Refusal)) {
    const sha = String(told);
    told = await say(link, 'EVALSHA', sha, 0, 'rlock1_version');
    // Flushed meanwhile: whoever calls it next loads it again.
    if (!(told instanceof Refusal) || unknown(told)) return { kind: 'script', sha };
  }
  throw new Refusal(`${told.code} ${NONE} (${told.message})`, true);
}

let warned = false;

/** What a program has asked for, and what there is. */
export class Demands {
  /** @type {Backend['kind'] | undefined} */
  found = undefined;

  /** @param {'module' | undefined} only @param {number} patience */
  constructor(only, patience) {
    this.only = only;
    this.patience = patience;
  }

  /** @param {Backend} backend */
  check({ kind }) {
    if (this.only && kind !== this.only) throw new Refusal("ERR unknown command 'RLOCK.ACQUIRE'", true);
    if (kind !== 'module' && !warned) {
      warned = true;
      process.emitWarning(
        `the server has no rlock module, so locks go by ${kind === 'script' ? 'a script' : 'functions'}: without the ` +
          'order of waiters and the instant hand-over, the watchdog of the server, the notice of a loss, and the ' +
          'detection of deadlocks',
        { type: 'RlockWarning', code: 'RLOCK_NO_MODULE' },
      );
    }
    this.found = kind;
  }
}

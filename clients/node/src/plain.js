// The part between a session and a server without the module. It takes the module's commands, calls
// the library, waits by trying, and gives the replies and messages that the module would.
import { AGAIN, hasModule, learn, loading, unknown } from './backend.js';
import { callOf, wordsOf } from './library.js';
import { Line, Wait } from './line.js';
import { Refusal } from './refusal.js';

/** @import { Backend, Call } from './library.js' */
/** @import { Link } from './link.js' */
/** @import { Places } from './places.js' */

/** @type {(string | number)[]} */
const NONE = [];
const never = () => false;

/** What the server refused in a script for want of rights has the code of that. @param {unknown} error */
function told(error) {
  const rights = error instanceof Refusal && error.code === 'ERR' && /ACL failure|The user executing|NOPERM/.test(error.message);
  return rights ? new Refusal(`NOPERM ${error.message.slice('ERR '.length)}`) : error;
}

/** Whose wait it is: that of one owner for several keys is cancelled by the first of them. @param {Call} call */
const idOf = ({ keys, args: [owner] }) => JSON.stringify([keys[0], owner]);

export class Plain {
  /** @type {Map<string, Line>} by keys and kind */
  #lines = new Map();
  /** @type {Map<string, Wait>} by key and owner */
  #waits = new Map();
  /** @type {Map<string, {lines: Set<Line>, hear: () => void}>} by channel */
  #channels = new Map();
  #calls = 0;
  /** @type {{call: number, go: () => void}[] | undefined} what waits until the library is there again */
  #held = undefined;

  /** @param {Link} link @param {Backend} backend @param {Places} places */
  constructor(link, backend, places) {
    this.link = link;
    this.backend = backend;
    this.places = places;
  }

  /** Asks from time to time whether the module has come. Then the next connection has it. */
  watch() {
    this.timer = setInterval(async () => {
      const come = await hasModule(this.link).catch(() => false);
      if (come) this.link.close(new Error('the server has the module now'));
    }, AGAIN.every);
    this.timer.unref();
  }

  /** A command of the module. @param {(string | number)[]} words @returns {Promise<unknown>} */
  call(words) {
    const call = callOf(words);
    if (call.command === 'CANCEL') return this.#leave(idOf(call));
    return call.wait === undefined ? this.ask(call) : this.#wait(call);
  }

  /**
   * Calls the library. Where the server has forgotten it, it is loaded and everything that was under
   * way is sent again, in its order.
   * @param {Call} call @param {(string | number)[]} [more] @param {() => boolean} [over]  nobody wants it any more
   * @returns {Promise<unknown>}
   */
  ask(call, more = NONE, over = never) {
    const number = this.#calls++;
    const { link } = this;
    if (this.#held) return this.#askAgain(call, more, over, number);
    return link.send(wordsOf(this.backend, link.cluster, call, more), (error) => {
      if (!unknown(error) || over()) throw told(error);
      if (!this.#held) this.#load();
      return this.#askAgain(call, more, over, number);
    });
  }

  /** @param {Call} call @param {(string | number)[]} more @param {() => boolean} over @param {number} number */
  async #askAgain(call, more, over, number) {
    for (;;) {
      const held = this.#held;
      if (held) await new Promise((go) => held.push({ call: number, go: () => go(undefined) }));
      try {
        return await this.link.send(wordsOf(this.backend, this.link.cluster, call, more));
      } catch (error) {
        if (!unknown(error) || over()) throw told(error);
      }
      if (!this.#held) this.#load();
    }
  }

  async #load() {
    /** @type {{call: number, go: () => void}[]} */
    const held = (this.#held = []);
    try {
      const backend = await learn(this.link);
      if (backend.kind === 'module') this.link.close(new Error('the server has the module now'));
      this.backend = backend;
    } catch (error) {
      this.link.close(/** @type {Error} */ (error)); // what is final is so for the next connection too
    }
    this.#held = undefined;
    // Once more, in one go with the calls: somebody may flush it again and again, and could do so
    // between a reply to this and each call.
    if (this.backend.kind !== 'module') this.link.send(loading(this.backend.kind)).catch(() => {});
    for (const { go } of held.sort((a, b) => a.call - b.call)) go();
  }

  /** @param {Call} call @returns {Promise<unknown>} */
  #wait(call) {
    const { keys, args } = call;
    // Owner and lease are each one's own. Of one kind are those of whom any can go first.
    const kind = JSON.stringify([keys, ...args.slice(2)]);
    const line = this.#lines.get(kind) ?? new Line(this, kind, call);
    this.#lines.set(kind, line);
    const id = idOf(call);
    const before = this.#waits.get(id); // it was asked for before, under another tag
    return new Promise((reply, refuse) => {
      const gone = () => this.#waits.get(id) === wait && this.#waits.delete(id);
      const wait = new Wait(line, call, reply, refuse, gone);
      this.#waits.set(id, wait);
      line.join(wait);
      // Only now: a line that is empty gives its place up.
      if (before?.leave()) before.line.left();
    });
  }

  /** @param {string} id */
  async #leave(id) {
    const wait = this.#waits.get(id);
    if (!wait?.leave()) return 0;
    await wait.line.left();
    return 1;
  }

  /** @param {Line} line */
  forget(line) {
    if (this.#lines.get(line.kind) === line) this.#lines.delete(line.kind);
  }

  /** @param {Line} line @param {string} channel */
  hear(line, channel) {
    const known = this.#channels.get(channel);
    if (known) return void known.lines.add(line);
    const lines = new Set([line]);
    const hear = () => lines.forEach((one) => one.woken());
    this.#channels.set(channel, { lines, hear });
    this.link.hear(channel, hear).catch((error) => {
      if (this.#channels.get(channel)?.lines === lines) this.#channels.delete(channel);
      // Without messages it goes on trying; but who may not listen is told so.
      if (error instanceof Refusal && error.code === 'NOPERM') lines.forEach((one) => one.fail(error));
    });
  }

  /** @param {Line} line @param {string} channel */
  unhear(line, channel) {
    const known = this.#channels.get(channel);
    if (!known?.lines.delete(line) || known.lines.size) return;
    this.#channels.delete(channel);
    this.link.unhear(channel, known.hear);
  }

  stop() {
    clearInterval(this.timer);
    for (const line of this.#lines.values()) line.stop();
  }
}

// Sticky locks: a use goes on until it is told to end.
import { Cancelled } from './answers.js';

/** @param {(words: object) => import('rlock-client').Locks} locksOf */
export function stickies(locksOf) {
  const made = new Map();
  const uses = new Map();
  const of = ({ sticky }) => made.get(sticky);

  /** Begins one, and gives what it has begun with. */
  async function begin(words) {
    const it = { cancel: new AbortController() };
    const told = new Promise((resolve, reject) => Object.assign(it, { end: resolve, fail: reject }));
    uses.set(words.use, it);
    return new Promise((begun, failed) => {
      const body = async (use) => {
        it.use = use;
        const token = words.token ? { token: await use.token() } : {};
        begun({ owner: use.owner, ...token });
        await told;
      };
      it.ended = of(words).use({ signal: it.cancel.signal }, body);
      it.ended.catch(failed);
    });
  }

  /** @param {number} times */
  async function many(sticky, times, token) {
    let last = 0;
    let rising = true;
    for (let n = 0; n < times; n++) {
      await sticky.use(async (use) => {
        if (!token) return;
        const next = await use.token();
        rising &&= next > last;
        last = next;
      });
    }
    return token ? { done: times, rising } : { done: times };
  }

  return {
    of,
    /** All bodies. */
    end: () => uses.forEach((it) => it.end()),
    DO: {
      sticky({ sticky, key, idle, wait, lease, ...words }) {
        made.set(sticky, locksOf(words).sticky(key, { idle, wait, lease }));
      },
      use: begin,
      use_token: async ({ use }) => ({ token: await uses.get(use).use.token() }),
      use_state: ({ use }) => ({ lost: uses.get(use).use.lost?.reason ?? null }),
      async use_end({ use, fail }) {
        const it = uses.get(use);
        if (fail) it.fail(new Error('the body failed'));
        else it.end();
        await it.ended;
      },
      use_many: (words) => many(of(words), words.times, words.token),
      use_cancel: ({ use }) => uses.get(use).cancel.abort(new Cancelled('cancelled')),
      sticky_close: (words) => of(words).close(),
    },
  };
}

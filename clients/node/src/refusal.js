// What a connection can end a command with.

// With these there is no sense in trying again: somebody has to change something.
const FINAL = ['NOPERM', 'NOAUTH', 'WRONGPASS', 'CLUSTER'];

/** The connection is closed; the session sees to what was under way. */
export class Closed extends Error {}

/** An error that the server answered. */
export class Refusal extends Error {
  /** @param {string} text @param {boolean} [final]  whether it would be no other if it were asked again */
  constructor(text, final) {
    super(text);
    this.code = text.split(' ', 1)[0];
    this.final = final ?? FINAL.includes(this.code);
  }

  /** Whether it does not know a word, for it is older. */
  get isSyntax() {
    return /^ERR syntax error/i.test(this.message);
  }

  /** Whether another server is, or will be, the one to ask. */
  get noMaster() {
    return ['READONLY', 'MASTERDOWN', 'LOADING', 'UNBLOCKED'].includes(this.code);
  }

  /** Whether, in a cluster, another node is, or will be, the one to ask. */
  get elsewhere() {
    return ['MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN'].includes(this.code);
  }
}

// What can come out of an acquisition or a hold. All of them are RlockErrors; bad arguments
// are TypeErrors and RangeErrors, and a cancelled wait has the reason of its AbortSignal.

export class RlockError extends Error {
  /** @param {string} message @param {ErrorOptions} [options] */
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

export class NotAcquiredError extends RlockError {
  /** @param {string[]} keys @param {{key: string, owner: string}} [own] a hold of this program that has one */
  constructor(keys, own) {
    const [key, who] = own ? [own.key, 'this program has it itself'] : [keys.join(', '), 'somebody else has it'];
    super(`${key}: ${who}`);
    this.keys = keys;
    this.key = own?.key ?? keys[0];
    this.heldBy = own?.owner;
  }
}

export class LostError extends RlockError {
  /** @param {string[]} keys @param {string} reason */
  constructor(keys, reason) {
    super(`${keys.join(', ')}: the hold was lost (${reason})`);
    this.keys = keys;
    this.reason = reason;
  }
}

export class DeadlockError extends RlockError {}

export class HeldByJobError extends RlockError {
  /** @param {string} key */
  constructor(key) {
    super(`${key}: this job holds it or waits for it already; use hold.again()`);
    this.key = key;
  }
}

export class RefusedError extends RlockError {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export class ConnectionError extends RlockError {}

/**
 * What the server answered, as the error that the program gets.
 * @param {string} text the whole error, its code first
 */
export function fromServer(text) {
  const [code] = text.split(' ', 1);
  if (/^ERR unknown command\W+RLOCK\./i.test(text)) {
    return new RefusedError(code, 'the server has no rlock module: load librlock.so (loadmodule), see the README');
  }
  return code === 'DEADLOCK' ? new DeadlockError(text) : new RefusedError(code, text);
}

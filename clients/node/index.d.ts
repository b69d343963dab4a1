// Distributed locks on Redis and Valkey, by the rlock module where it is.

/** How to acquire. All times are in ms. */
export interface AcquireOptions {
  /** How long to wait; `Infinity`: for ever. Absent or 0: try once. */
  wait?: number;
  /** How long the hold lasts without renewal (10,000). */
  lease?: number;
  /**
   * The server renews the lease as long as the connection is open, and frees the lock when it
   * closes (true); without the module this client renews it. Not behind a TCP proxy that outlives this process. With `false` the hold
   * ends with its lease unless `renew()` is called.
   */
  watchdog?: boolean;
  /** After so long the hold is released and lost, with the reason `max`. Only with `watchdog`. */
  max?: number;
  /** Many may read, or one may write. Absent: a plain lock. */
  mode?: 'read' | 'write';
  /** The lock is a semaphore with so many permits, 1 to 1,000,000. */
  limit?: number;
  /** How many permits to acquire (1). Only with `limit`. */
  permits?: number;
  /** So many replicas must have the hold, else it is released and `RefusedError` thrown. */
  acks?: number;
  /** How long the replicas may take (1,000). */
  acksTimeout?: number;
  /** Ends the wait: `acquire()` and `using()` reject with the signal's reason. No effect afterwards. */
  signal?: AbortSignal;
}

/** How to give way. All times are in ms. */
export interface GiveWayOptions {
  /** How long to wait for the lock again; absent or `Infinity`: for ever. */
  wait?: number;
  /** A hold that is younger does not give way (20). */
  least?: number;
  /** Ends the wait: `giveWay()` rejects with the signal's reason, and the hold is over. */
  signal?: AbortSignal;
}

/**
 * Why a hold was lost. `expired`, `forced`, `deleted`, `evicted`, `flushed`, `overwritten`,
 * `demoted`, `moved`, `rebound`, `released` and `silent` (see `patience` of `Locks`) are the server's words (without
 * the module a renewal finds only `deleted` and `overwritten`); `connection`: it closed; `max`: see there; `lease`: its deadline passed; `closed`: `locks.close()`.
 */
export type LostReason =
  | 'expired' | 'forced' | 'deleted' | 'evicted' | 'flushed' | 'overwritten' | 'demoted'
  | 'moved' | 'rebound' | 'released' | 'silent' | 'connection' | 'max' | 'lease' | 'closed'
  | (string & {});

/** A lock, or several, that this program holds. */
export interface Hold extends AsyncDisposable {
  /** Rises with each hold of a lock: let storage refuse a smaller one. */
  readonly token: number;
  /** The key, of several the first. */
  readonly key: string;
  readonly keys: string[];
  /** The owner's name in the server. */
  readonly owner: string;
  /** Aborted when the hold is lost, with the `LostError` as its reason; not by `release()`. */
  readonly signal: AbortSignal;
  /** How the hold was lost, or null. Once lost it is lost for good. */
  readonly lost: LostError | null;
  /**
   * Whether somebody waits whom its release would serve, as the server has said within the last half of its lease.
   * A hint: it may come late, and be out of date. The first use asks the server for it, without waiting; so it is
   * false then. Always false for several keys, and without the module.
   */
  readonly wanted: boolean;
  /**
   * Waits until it is wanted.
   * @returns true, at once if it is so already; false if the hold is over
   * @throws the signal's reason
   */
  untilWanted(options?: { signal?: AbortSignal }): Promise<boolean>;
  /**
   * For a long job, between two pieces of its work: if it is `wanted` and older than `least`, it is released, and
   * acquired again behind whoever waits. Then this same hold has a new `token` and a whole lease; `max` is counted anew.
   * If that fails it is over: `lost` (`released`), and its release, or the end of `using()`, throws nothing more.
   * @returns true when it has given way and holds again; false at once if there was no need to
   * @throws LostError if it was lost before, or somebody releases it meanwhile
   * @throws NotAcquiredError, DeadlockError, RefusedError, ConnectionError, the signal's reason
   * @throws RlockError, before anything is done: for several keys, and while there is an `again()`
   */
  giveWay(options?: GiveWayOptions): Promise<boolean>;
  /**
   * Renews it, for `lease` ms from now on (as before).
   * @throws LostError, ConnectionError, RefusedError
   */
  renew(lease?: number): Promise<void>;
  /**
   * One more hold of it within the same work, counted here: the last `release()` releases.
   * @returns the same hold
   * @throws LostError
   */
  again(): Hold;
  /**
   * Releases it. From the call on it is over for the program, also if the connection breaks.
   * A second release does nothing.
   * @throws LostError if it was lost before: the program was not alone for all that time
   * @throws RefusedError if the server would not; the release is retried with each heartbeat
   */
  release(): Promise<void>;
  /** `await using hold = await locks.acquire(...)`: `release()` */
  [Symbol.asyncDispose](): Promise<void>;
}

/** How a sticky lock is kept. All times are in ms. */
export interface StickyOptions {
  /** When its last use has ended so long ago it goes back (1,000, which is the most). */
  idle?: number;
  /** How long each use waits (30,000). It has an end. */
  wait?: number;
  /** Its lease (10,000). */
  lease?: number;
}

export interface UseOptions {
  /** Ends the wait: `use()` rejects with the signal's reason. No effect afterwards. */
  signal?: AbortSignal;
}

/** What the body of `sticky.use()` has of the lock. It is over when the body ends. */
export interface Use {
  readonly key: string;
  /** The owner of the acquisition, which one use or many have had. */
  readonly owner: string;
  /** Aborted when the lock is lost, with the `LostError` as its reason. */
  readonly signal: AbortSignal;
  /** How the lock was lost, or null. */
  readonly lost: LostError | null;
  /**
   * A fencing token of this use, greater than those of all before it: let storage refuse a smaller one. The first use that
   * asks for one since the lock was acquired has it at once, each other one by a round trip to the server. If that fails
   * the lock goes back at the end of this use.
   * @throws LostError, RefusedError, ConnectionError
   */
  token(): Promise<number>;
}

/**
 * A lock that stays with these locks between its uses, for call sites that take the same lock again and again. A use of a lock
 * that is here already costs no message. Others see it held meanwhile, also while nobody uses it. It goes to whoever waits for
 * it at the end of a use, and goes back when nobody has used it for `idle`, or when it was here for a second.
 */
export interface Sticky extends AsyncDisposable {
  readonly key: string;
  /**
   * Runs the body while this program has the lock. Uses come one after the other, in the order of their calls. On a
   * loss `use.signal` is aborted; `use()` waits for the body to end and rejects with the `LostError` (what the body threw is its
   * `cause`). A use within a use of the same lock waits for itself, until its time is over.
   * @returns what the body returns
   * @throws NotAcquiredError, RefusedError, ConnectionError, the signal's reason
   */
  use<T>(body: (use: Use) => T | PromiseLike<T>): Promise<T>;
  use<T>(options: UseOptions, body: (use: Use) => T | PromiseLike<T>): Promise<T>;
  /**
   * Releases it, after the use that is under way. No use begins any more. Waits for the server's answer, if no use is under
   * way.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Acquirer {
  /**
   * Acquires a lock; of several keys all or none (plain locks only).
   * @throws NotAcquiredError, DeadlockError, HeldByJobError, RefusedError, ConnectionError
   * @throws the signal's reason
   */
  acquire(keys: string | readonly string[], options?: AcquireOptions): Promise<Hold>;
  /**
   * Acquires, runs the body, and releases. On a loss `signal` is aborted; `using()` waits for
   * the body to end and rejects with the `LostError` (what the body threw is its `cause`).
   * @returns what the body returns
   */
  using<T>(
    keys: string | readonly string[],
    options: AcquireOptions,
    body: (signal: AbortSignal, hold: Hold) => T | PromiseLike<T>,
  ): Promise<T>;
  using<T>(
    keys: string | readonly string[],
    body: (signal: AbortSignal, hold: Hold) => T | PromiseLike<T>,
  ): Promise<T>;
}

/** Several holds of one piece of work: the server sees deadlocks between jobs. */
export interface Job extends Acquirer {
  /** The owner of all its holds; without the module each has one of its own. */
  readonly owner: string;
}

export interface LocksOptions {
  /** How long to try to connect, in ms (5,000). */
  timeout?: number;
  /**
   * For how long this program may be silent, in ms (30,000). If its event loop does not turn for longer, the server
   * takes the holds with `watchdog` that somebody waits for: they are lost, with the reason `silent`. Never less than the
   * longest lease of a hold with `watchdog`, nor than 300. `Infinity`: nothing is lost so. Only on servers with the module.
   */
  patience?: number;
  /** `'module'`: on a server without the rlock module requests are refused. Absent: any server will do. */
  backend?: 'module';
}

/**
 * What a program makes once. It has one connection of its own to the server, with the options
 * of the client that it is given; that client need not be connected, and stays as it is.
 */
export class Locks implements Acquirer, AsyncDisposable {
  /** @param client of node-redis (`createClient`, `createCluster`) or ioredis (`Redis`, `Cluster`) */
  constructor(client: object, options?: LocksOptions);
  /**
   * What the server has for locks, as it was last seen: the module, or the function library, as
   * functions or as a script. Undefined before the first connection.
   */
  readonly backend: 'module' | 'functions' | 'script' | undefined;
  acquire: Acquirer['acquire'];
  using: Acquirer['using'];
  /** A plain lock that stays here between its uses. Nothing is sent before the first one. */
  sticky(key: string, options?: StickyOptions): Sticky;
  /** A piece of work that takes several locks, one after the other. */
  job(): Job;
  /**
   * Releases every hold (it is lost: `closed`), also where `using()` still runs its body, ends every
   * wait and closes the connection.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The base of all errors below. */
export class RlockError extends Error {
  constructor(message: string, options?: ErrorOptions);
}
/** Somebody else has it, and had it for the whole wait. */
export class NotAcquiredError extends RlockError {
  readonly keys: string[];
  /** The first of them, or the one that `heldBy` has. */
  readonly key: string;
  /** The owner that has it, where that is one of these locks' own. */
  readonly heldBy: string | undefined;
}
/** The hold was lost. */
export class LostError extends RlockError {
  readonly keys: string[];
  readonly reason: LostReason;
}
/** To wait would have closed a cycle of jobs that wait for each other; the text names them. */
export class DeadlockError extends RlockError {}
/** The job holds the key, or waits for it, already. */
export class HeldByJobError extends RlockError {
  readonly key: string;
}
/** Another error of the server, such as NOREPLICAS, OOM, WRONGTYPE, WRONGMODE, NOPERM. */
export class RefusedError extends RlockError {
  readonly code: string;
}
/** No connection within the time, or `close()` was called. */
export class ConnectionError extends RlockError {}

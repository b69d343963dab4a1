// Errors in the words of the runner.
import {
  ConnectionError, DeadlockError, HeldByJobError, LostError, NotAcquiredError, RefusedError,
} from 'rlock-client';

const NAMES = [
  [NotAcquiredError, 'not_acquired'],
  [LostError, 'lost'],
  [DeadlockError, 'deadlock'],
  [HeldByJobError, 'held_by_job'],
  [RefusedError, 'refused'],
  [ConnectionError, 'connection'],
  [TypeError, 'argument'],
  [RangeError, 'argument'],
];

/** What an AbortController of the driver gives as its reason. */
export class Cancelled extends Error {}

/** What the program's own callback throws; of an AbortSignal's listener it is an uncaught exception. */
export class Thrown extends Error {}

export function answer(error) {
  const name = error instanceof Cancelled ? 'cancelled' : NAMES.find(([type]) => error instanceof type)?.[1];
  const answered = { error: name ?? 'other', text: String(error.message ?? error) };
  if (error instanceof NotAcquiredError) Object.assign(answered, { key: error.key, held_by: error.heldBy ?? null });
  return error instanceof RefusedError ? { ...answered, code: error.code } : answered;
}

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for a condition, for as long as it may take on a slow machine. */
export async function until(condition, what, ms = 20_000) {
  const end = performance.now() + ms;
  for (;;) {
    const found = await condition();
    if (found) return found;
    assert(performance.now() < end, `in vain: ${what}`);
    await sleep(10);
  }
}

/** What it rejects with. */
export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail('it did not reject');
}

/** Until the hold says that it is lost. */
export const lost = (hold, ms) => until(() => hold.lost, 'the hold is lost', ms).then((error) => error.reason);

// Uses of a sticky lock that go on until they are told to end.
import { failure } from './until.js';

/** Begins one, or has it wait. `begun` is what its body has; `end()` is how it ends. */
export function begins(sticky, options = {}) {
  const it = {};
  const told = new Promise((resolve, reject) => Object.assign(it, { resolve, reject }));
  told.catch(() => {});
  it.begun = new Promise((begun, failed) => {
    it.done = sticky.use(options, async (use) => {
      begun(use);
      return told;
    });
    it.done.catch(failed);
  });
  it.begun.catch(() => {});
  it.end = (result) => (it.resolve(result), it.done);
  it.fails = (error) => (it.reject(error), failure(it.done));
  return it;
}

/** One that has begun. */
export async function begun(sticky, options) {
  const it = begins(sticky, options);
  it.use = await it.begun;
  return it;
}

export const nothing = () => {};

/** The owner of a use that does nothing. */
export const ownerOf = (sticky) => sticky.use(({ owner }) => owner);

/** Whether it is settled, when all that is under way in here is done. */
export async function isSettled(promise) {
  const still = {};
  const wait = new Promise((done) => setTimeout(done, 50, still));
  return (await Promise.race([promise.catch(() => {}), wait])) !== still;
}

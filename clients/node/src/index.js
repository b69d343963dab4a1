export {
  ConnectionError, DeadlockError, HeldByJobError, LostError, NotAcquiredError, RefusedError, RlockError,
} from './errors.js';
export { Locks } from './locks.js';

import { createClient } from 'redis';
import { Locks, LostError, NotAcquiredError } from 'rlock-client';

const client = createClient({ url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' });
const locks = new Locks(client); // one for the whole process; it connects by itself

try {
  const report = await locks.using('reports:nightly', { wait: 10_000 }, async (signal, hold) => {
    console.log('nobody else does this now; token', hold.token);
    // ... the work: give `signal` to whatever takes one, and the token to the storage
    signal.throwIfAborted();
    return 'written';
  });
  console.log('report:', report);
} catch (error) {
  if (error instanceof NotAcquiredError) console.log('somebody else had it for all of 10 s');
  else if (error instanceof LostError) console.log('lost on the way:', error.reason);
  else throw error;
} finally {
  await locks.close();
}

// A program in TypeScript; it need only compile.
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { LostError, Locks, NotAcquiredError } from 'rlock-client';

export async function program(): Promise<number> {
  await using locks = new Locks(createClient(), { timeout: 1000, patience: Infinity });
  new Locks(new Redis());
  const n: number = await locks.using('jobs', { wait: 10_000 }, async (signal, hold) => {
    signal.throwIfAborted();
    await using again = hold.again();
    return again.token;
  });
  await using sticky = locks.sticky('jobs', { idle: 500, wait: 1000, lease: 5000 });
  const token: number = await sticky.use({ signal: new AbortController().signal }, (use) => use.token());
  const owner: string = await sticky.use((use) => use.lost?.reason ?? use.owner + use.signal.aborted + token);
  // @ts-expect-error
  locks.sticky(owner, { max: 1 });
  const text: string = await locks.using('jobs', () => 'at once');
  try {
    await using hold = await locks.job().acquire(['a', 'b'], { watchdog: false, lease: 500 });
    await hold.renew();
    const gave: boolean = await hold.giveWay({ wait: 60_000, least: 100, signal: new AbortController().signal });
    if (gave) await hold.giveWay();
  } catch (error) {
    if (error instanceof LostError && (error.reason === 'forced' || error.reason === 'silent')) return text.length;
    if (error instanceof NotAcquiredError) return error.keys.length;
  }
  // @ts-expect-error
  await locks.acquire('jobs', { mode: 'shared' });
  return n;
}

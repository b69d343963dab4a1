// A program that holds a lock until it is told to go on, and says what became of it. Its arguments: the library, the
// port, and the options of the locks and of the lock.
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { Locks } from 'rlock-client';

const [library, port, ofLocks, ofLock] = process.argv.slice(2).map((word) => JSON.parse(word));
const client = library === 'ioredis' ? new Redis({ port, lazyConnect: true }) : createClient({ socket: { port } });
const locks = new Locks(client, ofLocks);
const told = new Promise((done) => process.stdin.once('data', done));

async function work(signal, hold) {
  console.log('held');
  await Promise.race([told, new Promise((done) => signal.addEventListener('abort', done))]);
  console.log(hold.lost ? `lost ${hold.lost.reason}` : 'not lost');
}

await locks.using('jobs', ofLock, work).then(() => console.log('end'), (error) => console.log(error.name, error.reason));
await locks.close();
process.stdin.destroy();

// What hurts clients without QUEUE, NOTIFY, ONCE and CANCEL does not hurt ioredis.
import { Redis } from 'ioredis';
import { check } from './checks.js';
import { Session } from './session.js';

// In docs/clients.md:
class IoredisSession extends Session {
  static async open(options) {
    const session = new IoredisSession();
    // It would connect again, but the waits and holds would not come back.
    session.client = new Redis({ ...options, protocol: 3, retryStrategy: () => null });
    session.client.on('close', () => session.end());
    session.client.on('error', () => {}); // notified by close
    session.client.on('message', (_, message) => session.onMessage(message));
    await session.client.subscribe(session.channel);
    return session;
  }

  call(...words) {
    return this.client.call(...words.map(String));
  }

  close() {
    this.client.disconnect();
  }
}
// So far.

await check({
  open: (port) => IoredisSession.open({ port }),
  plain: async (port) => {
    const client = new Redis({ port }).on('error', () => {});
    return { call: (...words) => client.call(...words.map(String)), close: () => client.disconnect() };
  },
});

// What hurts clients without QUEUE, NOTIFY, ONCE and CANCEL does not hurt node-redis.
import { createClient } from 'redis';
import { check } from './checks.js';
import { Session } from './session.js';

// In docs/clients.md:
class NodeRedisSession extends Session {
  static async open(options) {
    const session = new NodeRedisSession();
    session.client = createClient({ ...options, RESP: 3 });
    // It would connect again, but the waits and holds would not come back.
    session.client.on('error', () => session.end());
    await session.client.connect();
    await session.client.subscribe(session.channel, (message) => session.onMessage(message));
    return session;
  }

  call(...words) {
    return this.client.sendCommand(words.map(String));
  }

  close() {
    if (this.client.isOpen) this.client.destroy();
  }
}
// So far.

await check({
  open: (port) => NodeRedisSession.open({ socket: { port } }),
  plain: async (port) => {
    const client = createClient({ socket: { port } }).on('error', () => {});
    await client.connect();
    return { call: (...words) => client.sendCommand(words.map(String)), close: () => client.destroy() };
  },
});

// Locks by a connection of their own, for the whole process: what does not depend on the
// client library.
import { randomUUID } from 'node:crypto';

export class Session {
  channel = `rlock:${randomUUID()}`;
  tags = 0;
  notified = new Map(); // by tag: what the server notifies of a request, and of its hold

  // In docs/clients.md:
  // The token, or null after `wait` ms. `lost` is called when the hold is lost.
  async acquire(key, owner, lease, { wait = 0, words = [], lost = () => {}, signal } = {}) {
    const tag = String(++this.tags);
    const cancel = () => this.call('RLOCK.CANCEL', key, owner).catch(() => {});
    signal?.addEventListener('abort', cancel);
    try {
      return await new Promise((granted, failed) => {
        this.notified.set(tag, (word, rest) => {
          if (word === 'granted') granted(Number(rest));
          else if (word === 'timeout') granted(null);
          else failed(new Error(`${word}: ${rest}`));
          if (word === 'lost') lost(rest);
        });
        words = ['QUEUE', wait, 'NOTIFY', this.channel, tag, 'ONCE', ...words];
        this.call('RLOCK.ACQUIRE', key, owner, lease, ...words)
          .then((reply) => reply === 'QUEUED' || granted(reply), failed);
      });
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  // So far.

  onMessage(message) {
    const [, word, tag, rest] = /^(\S+) (\S+) ?(.*)$/.exec(message);
    const notify = this.notified.get(tag);
    if (word !== 'granted') this.notified.delete(tag);
    notify?.(word, rest);
  }

  // With the connection all waits and all holds with WATCHDOG are over, and so is this:
  // what the library would send again on another one, nobody waits for any more.
  end() {
    for (const tag of this.notified.keys()) this.onMessage(`lost ${tag} connection`);
    this.close();
  }
}

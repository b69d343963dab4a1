// A TCP proxy that loses what the server says, and knows what the clients have said.
import { connect, createServer } from 'node:net';

export class Proxy {
  /** @param {import('node:test').TestContext} t @param {number} port of the server */
  static async start(t, port) {
    const proxy = new Proxy();
    proxy.sockets = new Set();
    proxy.to = port;
    proxy.pieces = []; // of what was said, as they came
    proxy.listener = createServer((client) => proxy.#serve(client));
    await new Promise((done) => proxy.listener.listen(0, '127.0.0.1', done));
    proxy.port = proxy.listener.address().port;
    t.after(() => proxy.end());
    return proxy;
  }

  /** All of it. */
  get said() {
    return this.pieces.join('');
  }

  /** The next request with this word is carried out; its reply is lost and the connection closed. */
  cut(word) {
    this.word = word;
    this.then = 'close';
  }

  /** ... its reply alone is lost. */
  drop(word) {
    this.word = word;
    this.then = 'drop';
  }

  /** The server gets another word of the same length, and the client does not see that. */
  instead(word, other) {
    this.words = [word, other];
  }

  #replaced(data, from, to) {
    if (!this.words) return data;
    const [one, two] = [this.words[from], this.words[to]];
    return Buffer.from(data.toString('latin1').replaceAll(one, two), 'latin1');
  }

  /** Nothing goes to the client until let(). */
  hold() {
    this.held = [];
  }

  let() {
    const { held } = this;
    this.held = undefined;
    for (const [client, data] of held) client.write(data);
  }

  close() {
    for (const socket of this.sockets) socket.destroy();
  }

  #serve(client) {
    const server = connect(this.to, '127.0.0.1');
    let losing;
    const both = [client, server];
    for (const socket of both) {
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.sockets.delete(socket);
        for (const other of both) other.destroy();
      });
    }
    client.on('data', (data) => {
      this.pieces.push(data.toString('latin1'));
      if (this.word && data.includes(this.word)) {
        losing = this.then;
        this.word = undefined;
      }
      server.write(this.#replaced(data, 0, 1));
    });
    server.on('data', (answer) => {
      const data = this.#replaced(answer, 1, 0);
      if (losing === 'close') client.destroy();
      else if (losing === 'drop') losing = undefined;
      else if (this.held) this.held.push([client, data]);
      else client.write(data);
    });
  }

  async end() {
    this.close();
    await new Promise((done) => this.listener.close(done));
  }
}

// A real server with the module, for one test: its own port, its own directory, gone after it.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createClient } from 'redis';
import { until } from './until.js';

const SERVER = process.env.RLOCK_SERVER ?? 'redis-server';
export const MODULE = process.env.RLOCK_MODULE ?? resolve(import.meta.dirname, '../../../../target/release/librlock.so');

// Below the ports that the kernel gives to clients, so that a server that starts again finds its
// own free; and of those, some for each program of tests: the other clients' tests do it alike.
const [FIRST, LAST, BLOCK] = [10_000, 20_000, 400];
let mine;
let given = 0;

function listen(port) {
  return new Promise((done) => {
    const guard = createServer().once('error', () => done(null));
    guard.listen(port, '127.0.0.1', () => done(guard)).unref();
  });
}

/** Who listens on the first port of a block has it. */
async function block() {
  const blocks = (LAST - FIRST) / BLOCK;
  for (let n = 0; n < blocks; n++) {
    const first = FIRST + ((process.pid + n) % blocks) * BLOCK;
    if (await listen(first)) return first;
  }
  throw new Error('other tests have all ports');
}

/** One that nobody listens on now, and that no other program of tests is given while this one runs. */
export async function freePort() {
  const first = await (mine ??= block());
  for (let n = 0; n < BLOCK; n++) {
    const port = first + 1 + (given++ % (BLOCK - 1));
    const probe = await listen(port);
    if (!probe) continue;
    await new Promise((done) => probe.close(done));
    return port;
  }
  throw new Error('no free port');
}

export class Server {
  /** @param {import('node:test').TestContext} t @param {string[]} more arguments */
  static start(t, ...more) {
    return Server.plain(t, '--loadmodule', MODULE, ...more);
  }

  /** Without the module. */
  static async plain(t, ...more) {
    const server = new Server();
    server.more = more;
    server.port = await freePort();
    server.directory = mkdtempSync(join(tmpdir(), 'rlock-node-'));
    t.after(() => server.end());
    await server.run();
    return server;
  }

  async run() {
    const words = ['--port', this.port, '--bind', '127.0.0.1', '--dir', this.directory, '--save', ''];
    // The server dies with this process, however that ends.
    this.child = spawn('setpriv', ['--pdeathsig', 'KILL', SERVER, ...words.map(String), ...this.more], { stdio: 'ignore' });
    this.gone = new Promise((done) => this.child.once('exit', done));
    this.admin = createClient({ RESP: 3, socket: { port: this.port, host: '127.0.0.1', reconnectStrategy: 20 } });
    this.admin.on('error', () => {});
    await this.admin.connect();
    // It answers HELLO while it still loads its data.
    await until(() => this.say('PING').catch(() => false), 'the server has loaded its data');
  }

  /** A command, for one line of a test. @param {...(string | number)} words */
  say(...words) {
    return this.admin.sendCommand(words.map(String));
  }

  async info(key) {
    return this.say('RLOCK.INFO', key);
  }

  /** Until so many wait for the key. */
  waiting(key, many) {
    return until(async () => (await this.info(key)).waiters === many, `${many} wait for ${key}`);
  }

  free(key) {
    return until(async () => (await this.info(key)).mode === 'free', `${key} is free`);
  }

  signal(name) {
    this.child.kill(name);
  }

  async kill() {
    this.admin.destroy();
    this.signal('SIGKILL');
    await this.gone;
  }

  async restart() {
    await this.kill();
    await this.run();
  }

  async end() {
    await this.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

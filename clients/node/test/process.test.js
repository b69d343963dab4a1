// Programs: how they end, and the ones that the README quotes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Server } from './tools/server.js';

const FOLDER = join(import.meta.dirname, '..');

/** Runs it to its end. @returns {Promise<{code: number | null, out: string, ms: number}>} */
function node(server, words, saw = () => {}) {
  const began = performance.now();
  const environment = { ...process.env, REDIS_URL: `redis://127.0.0.1:${server.port}` };
  const child = spawn(process.execPath, words, { cwd: FOLDER, env: environment });
  const late = setTimeout(() => child.kill('SIGKILL'), 60_000);
  let out = '';
  child.stdout.on('data', (data) => saw((out += data)));
  child.stderr.on('data', (data) => (out += data));
  return new Promise((done) => {
    child.once('close', (code) => {
      clearTimeout(late);
      done({ code, out, ms: performance.now() - began });
    });
  });
}

const program = (client, text) => ['--input-type=module', '--eval', `
  import { createClient } from 'redis';
  import { Redis } from 'ioredis';
  import { Locks } from 'rlock-client';
  const url = process.env.REDIS_URL;
  const locks = new Locks(${client}, { timeout: 5000 });
  ${text}
`];
const CLIENTS = ['createClient({ url })', 'new Redis(url, { lazyConnect: true })'];

test('the examples run', async (t) => {
  const server = await Server.start(t);
  const first = await node(server, ['examples/first.js']);
  assert.match(first.out, /nobody else does this now; token \d+\nreport: written\n$/);
  assert.equal(first.code, 0);
  const forms = await node(server, ['examples/forms.js']);
  const written = 'written: one\nwritten: two\nwritten: three\n'; // by a job that stops when somebody waits, and by one that gives way
  assert.equal(forms.out, `reading\nwriting\ntwo of four\nboth\norders and stock\nno more patience\n${written}${written}written: a\nwritten: b\nwritten: c\n`);
  assert.equal(forms.code, 0);
});

test('the README quotes the examples as they are', async () => {
  const readme = await readFile(join(FOLDER, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/<!-- from (\S+) -->\n```\w+\n(.*?)```/gs)];
  assert(blocks.length > 0);
  for (const [, file, block] of blocks) {
    assert((await readFile(join(FOLDER, file), 'utf8')).includes(block), `${file}:\n${block}`);
  }
});

for (const client of CLIENTS) {
  test(`a program that has nothing to do ends: ${client}`, async (t) => {
    const server = await Server.start(t);
    const done = await node(server, program(client, `await locks.using('a', () => {}); console.log('end');`));
    assert.deepEqual([done.code, done.out], [0, 'end\n']);
  });

  test(`a sticky lock that is idle keeps no program alive for long: ${client}`, async (t) => {
    const server = await Server.start(t);
    const text = `
      const sticky = locks.sticky('a');
      const uses = [1, 2].map(() => sticky.use(() => new Promise((done) => setTimeout(done, 1100)))); // after the first it goes back
      await Promise.all(uses);
      console.log('end');
    `;
    const done = await node(server, program(client, text));
    assert.deepEqual([done.code, done.out], [0, 'end\n']);
    await server.free('a');
  });

  test(`a hold keeps a program alive, and so does a wait: ${client}`, async (t) => {
    const server = await Server.start(t);
    await server.say('RLOCK.ACQUIRE', 'b', 'other', 60_000);
    const text = `
      locks.acquire('b', { wait: Infinity }).then(async (hold) => {
        await hold.release();
        const other = await locks.acquire('a');
        console.log('held');
        other.signal.addEventListener('abort', () => console.log('lost', other.lost.reason));
      });
    `;
    const ended = node(server, program(client, text), (out) => out === 'held\n' && server.say('RLOCK.FORCE', 'a'));
    await server.waiting('b', 1);
    await server.say('RLOCK.RELEASE', 'b', 'other');
    const done = await ended;
    assert.deepEqual([done.code, done.out], [0, 'held\nlost forced\n']);
  });

  test(`nobody listens, and nothing is unhandled: ${client}`, async (t) => {
    const server = await Server.start(t);
    const text = `
      const holds = await Promise.all(['a', 'b'].map((key) => locks.acquire(key, { lease: 5000 })));
      void holds[0].signal;
      const abort = new AbortController();
      const wait = locks.acquire('a', { wait: Infinity, signal: abort.signal }).catch(() => {});
      console.log('held');
      await new Promise((done) => process.stdin.once('data', done).resume());
      process.stdin.destroy();
      while (!holds[1].lost) await new Promise((done) => setTimeout(done, 10));
      abort.abort();
      await wait;
      for (const hold of holds) await hold.release().catch((error) => console.log(error.reason));
    `;
    const began = performance.now();
    const environment = { ...process.env, REDIS_URL: `redis://127.0.0.1:${server.port}` };
    const child = spawn(process.execPath, program(client, text), { cwd: FOLDER, env: environment });
    let out = '';
    child.stderr.on('data', (data) => (out += data));
    await new Promise((done) => child.stdout.on('data', (data) => ((out += data), done())));
    await server.kill(); // and it never comes back
    child.stdin.write('go\n');
    const code = await new Promise((done) => child.once('close', done));
    await server.run();
    assert.deepEqual([code, out], [0, 'held\nconnection\nconnection\n']);
    assert(performance.now() - began < 30_000); // commands that are pending for a server that is gone delay nobody
  });
}

test('it can be required', async (t) => {
  const server = await Server.start(t);
  const text = `const { Locks } = require('rlock-client'); console.log(typeof Locks);`;
  const done = await node(server, ['--input-type=commonjs', '--no-warnings', '--eval', text]);
  const [major, minor] = process.versions.node.split('.').map(Number);
  const can = major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19);
  if (can) assert.equal(done.out, 'function\n');
});


// TLS with a real server: the right certificate authority, none, another, and another name.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConnectionError } from 'rlock-client';
import { forEach } from './tools/libraries.js';
import { Server, freePort } from './tools/server.js';
import { failure, lost } from './tools/until.js';

/** A certificate for 127.0.0.1 that is its own authority. */
function certificate(t) {
  const folder = mkdtempSync(join(tmpdir(), 'rlock-tls-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [key, cert] = ['key', 'cert'].map((name) => join(folder, `${name}.pem`));
  const words = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=rlock test'];
  execFileSync('openssl', [...words, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return { key, cert, text: readFileSync(cert) };
}

forEach('over TLS', async (t, open) => {
  const [right, wrong] = [certificate(t), certificate(t)];
  const port = await freePort();
  const words = ['--tls-port', port, '--tls-cert-file', right.cert, '--tls-key-file', right.key, '--tls-auth-clients', 'no'];
  const server = await Server.start(t, ...words.map(String));
  const over = (tls, options) =>
    open(port, { ...options, client: { 'node-redis': { socket: { tls: true, ...tls } }, ioredis: { tls } } });
  const locks = over({ ca: right.text });
  const hold = await locks.acquire('jobs');
  const wait = locks.acquire('jobs', { wait: 30_000 });
  await server.waiting('jobs', 1);
  await hold.release();
  await server.say('RLOCK.FORCE', 'jobs');
  assert.equal(await lost(await wait), 'forced');
  const again = await locks.acquire('jobs');
  await server.say('CLIENT', 'KILL', 'TYPE', 'pubsub');
  assert.equal(await lost(again), 'connection');
  await (await locks.acquire('jobs')).release();
  for (const tls of [{}, { ca: wrong.text }, { ca: right.text, servername: 'other.example' }]) {
    const refused = over(tls, { timeout: 4000 });
    const error = await failure(refused.acquire('jobs'));
    assert(error instanceof ConnectionError, String(error));
    assert.match(error.message, /self-signed|certificate|altnames/i);
    await refused.close();
  }
  const plain = await failure(open(port, { timeout: 500 }).acquire('jobs'));
  assert(plain instanceof ConnectionError, String(plain));
  assert.equal((await server.info('jobs')).mode, 'free');
});

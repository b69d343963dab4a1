// A cluster of three masters, each with a replica if wanted.
import { until } from './until.js';
import { Server, freePort } from './server.js';
import { slotOf } from '../../src/slots.js';

const SLOTS = 16_384;

/** The first key of this kind that the master with this number has. */
export function keyAt(number, kind) {
  for (let n = 0; ; n++) if (Math.floor((slotOf(`${kind}${n}`) * 3) / SLOTS) === number) return `${kind}${n}`;
}

export class Cluster {
  /** @param {import('node:test').TestContext} t */
  static async start(t, replicas = false, start = Server.start) {
    const cluster = new Cluster();
    cluster.masters = await Promise.all([0, 1, 2].map(() => node(t, start)));
    cluster.replicas = replicas ? await Promise.all([0, 1, 2].map(() => node(t, start))) : [];
    const nodes = [...cluster.masters, ...cluster.replicas];
    for (const [n, master] of cluster.masters.entries()) {
      const [first, behind] = [n, n + 1].map((third) => Math.floor((third * SLOTS) / 3));
      await master.say('CLUSTER', 'ADDSLOTSRANGE', first, behind - 1);
    }
    for (const [n, one] of nodes.entries()) await one.say('CLUSTER', 'SET-CONFIG-EPOCH', n + 1);
    for (const one of nodes.slice(1)) await nodes[0].say('CLUSTER', 'MEET', '127.0.0.1', one.port, one.bus);
    const whole = async (one) => {
      const info = await one.say('CLUSTER', 'INFO');
      return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${nodes.length}`);
    };
    for (const one of nodes) await until(() => whole(one), 'the cluster is there');
    for (const [n, replica] of cluster.replicas.entries()) {
      const master = cluster.masters[n];
      await replica.say('CLUSTER', 'REPLICATE', await master.say('CLUSTER', 'MYID'));
      await until(async () => (await master.say('INFO', 'replication')).includes('state=online'), 'it has a replica');
    }
    return cluster;
  }

  /** A slot with no keys in it. */
  async move(slot, source, target) {
    const id = await target.say('CLUSTER', 'MYID');
    for (const one of [target, source, ...this.masters]) await one.say('CLUSTER', 'SETSLOT', slot, 'NODE', id);
  }

  /** The slot of a key, with all that is in it. */
  async carry(key, source, target) {
    const slot = slotOf(key);
    await target.say('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await source.say('CLUSTER', 'MYID'));
    await source.say('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await target.say('CLUSTER', 'MYID'));
    for (;;) {
      const keys = await source.say('CLUSTER', 'GETKEYSINSLOT', slot, 100);
      if (!keys.length) break;
      await source.say('MIGRATE', '127.0.0.1', target.port, '', 0, 5000, 'KEYS', ...keys);
    }
    await this.move(slot, source, target);
  }
}

async function node(t, start) {
  const bus = await freePort();
  const config = ['--cluster-enabled', 'yes', '--cluster-node-timeout', 5000, '--repl-diskless-sync-delay', 0];
  const server = await start(t, ...config.map(String), '--cluster-port', String(bus));
  server.bus = bus;
  return server;
}

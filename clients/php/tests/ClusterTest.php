<?php

declare(strict_types=1);

namespace Rlock\Tests;

use PHPUnit\Framework\TestCase;
use Rlock\Exception\RefusedException;
use Rlock\Locks;
use Rlock\Mode;
use Rlock\Server;
use Rlock\Tests\Support\Program;
use Rlock\Tests\Support\RealServer;
use Rlock\Tests\Support\Until;

final class ClusterTest extends TestCase
{
    /** @var array<string, list<RealServer>> */
    private static array $clusters = [];

    public static function tearDownAfterClass(): void
    {
        array_map(fn (RealServer $node) => $node->stop(), array_merge(...array_values(self::$clusters)));
        self::$clusters = [];
    }

    /** @dataProvider clients */
    public function testLocksOnEachNode(string $backend, callable $client): void
    {
        $nodes = self::nodes($backend);
        $locks = new Locks($client($nodes));
        // One for each node.
        foreach (['b', 'c', 'a'] as $key) {
            $hold = $locks->acquire($key);
            $this->assertNull($locks->tryAcquire($key));
            $hold->renew();
            $hold->release();
            $reader = $locks->acquire("$key:rw", mode: Mode::Read);
            $this->assertNull($locks->tryAcquire("$key:rw", wait: 0.12, mode: Mode::Write));
            $reader->release();
        }
        $this->assertSame($backend, $locks->backend()->value);
        $locks->acquire(['{x}1', '{x}2'])->release();
        try {
            $locks->acquire(['a', 'b']);
            $this->fail('keys of several slots');
        } catch (RefusedException $e) {
            $this->assertSame('CROSSSLOT', $e->errorCode);
        }
    }

    public static function clients(): iterable
    {
        $kinds = [
            'RedisCluster' => fn (array $nodes) => new \RedisCluster(null, ["127.0.0.1:{$nodes[0]->port}"]),
            'Predis' => fn (array $nodes) => new \Predis\Client(["tcp://127.0.0.1:{$nodes[1]->port}"], ['cluster' => 'redis']),
            'servers' => fn (array $nodes) => [new Server(port: 1), $nodes[2]->server()],
        ];
        foreach (['module', 'functions', 'script'] as $backend) {
            foreach ($kinds as $kind => $client) {
                yield "$kind, $backend" => [$backend, $client];
            }
        }
    }

    /** @dataProvider backends */
    public function testAWaitForALockWhoseSlotMoves(string $backend): void
    {
        $nodes = self::nodes($backend);
        $locks = new Locks([$nodes[0]->server()]);
        $key = "moves-$backend";
        $slot = $nodes[0]->call('CLUSTER', 'KEYSLOT', $key);
        $from = intdiv($slot, 5462);
        $hold = $locks->acquire($key, lease: 60);
        $waiter = new Program('cluster', $nodes[0]->port, $key);
        $this->assertSame('waits', $waiter->line());
        Until::true(fn (): bool => $backend === 'module' ? $nodes[$from]->call('RLOCK.INFO', $key)[5] === 1
            : $nodes[$from]->call('ZCARD', "rlock1_queue:{{$key}}") === 1, 'somebody waits');
        self::move($nodes, $slot, $from, ($from + 1) % 3);
        $hold->release();
        $this->assertSame('has it', $waiter->line());
        $this->assertSame('', $waiter->rest());
    }

    public static function backends(): array
    {
        return ['module' => ['module'], 'functions' => ['functions']];
    }

    public function testANodeThatWasGivenAsAServer(): void
    {
        $nodes = self::nodes('module');
        $keys = ['a', 'b', 'c'];
        $this->expectException(RefusedException::class);
        $this->expectExceptionMessage('give Locks a \RedisCluster');
        array_map(fn (string $key) => (new Locks($nodes[0]->redis()))->acquire($key), $keys);
    }

    /** @return list<RealServer> three, with a third of the slots each */
    private static function nodes(string $backend): array
    {
        // All at one time, for each needs some seconds to become one.
        if (self::$clusters === []) {
            foreach (['module', 'functions', 'script'] as $each) {
                self::$clusters[$each] = self::start($each);
            }
            foreach (array_merge(...array_values(self::$clusters)) as $node) {
                Until::true(fn (): bool => str_contains($node->call('CLUSTER', 'INFO'), 'cluster_state:ok')
                    && count($node->call('CLUSTER', 'SLOTS')) === 3, 'the cluster is ready');
            }
        }
        return self::$clusters[$backend];
    }

    /** @return list<RealServer> */
    private static function start(string $backend): array
    {
        $options = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '5000'];
        if ($backend === 'script') {
            array_push($options, '--rename-command', 'FCALL', '', '--rename-command', 'FCALL_RO', '');
        }
        $nodes = array_map(fn () => RealServer::start($backend === 'module', $options), range(0, 2));
        foreach ($nodes as $at => $node) {
            $last = min(($at + 1) * 5462 - 1, 16383);
            $node->call('CLUSTER', 'ADDSLOTSRANGE', (string) ($at * 5462), (string) $last);
            $node->call('CLUSTER', 'SET-CONFIG-EPOCH', (string) ($at + 1));
            $node->call('CLUSTER', 'MEET', '127.0.0.1', (string) $nodes[0]->port);
        }
        return $nodes;
    }

    /** @param list<RealServer> $nodes */
    private static function move(array $nodes, int $slot, int $from, int $to): void
    {
        $ids = array_map(fn (RealServer $node): string => $node->call('CLUSTER', 'MYID'), $nodes);
        $nodes[$to]->call('CLUSTER', 'SETSLOT', (string) $slot, 'IMPORTING', $ids[$from]);
        $nodes[$from]->call('CLUSTER', 'SETSLOT', (string) $slot, 'MIGRATING', $ids[$to]);
        while (($keys = $nodes[$from]->call('CLUSTER', 'GETKEYSINSLOT', (string) $slot, '100')) !== []) {
            $nodes[$from]->call('MIGRATE', '127.0.0.1', (string) $nodes[$to]->port, '', '0', '5000', 'KEYS', ...$keys);
        }
        foreach ($nodes as $node) {
            $node->call('CLUSTER', 'SETSLOT', (string) $slot, 'NODE', $ids[$to]);
        }
    }
}

<?php

declare(strict_types=1);

namespace Rlock\Tests;

use Rlock\Backend;
use Rlock\Exception\ConnectionException;
use Rlock\Exception\RefusedException;
use Rlock\Locks;
use Rlock\Server;
use Rlock\Tests\Support\BackendTestCase;
use Rlock\Tests\Support\Program;
use Rlock\Tests\Support\RealServer;
use Rlock\Tests\Support\Until;

final class ConnectionTest extends BackendTestCase
{
    /** @dataProvider clients */
    public function testEachKindOfClient(string $backend, callable $client): void
    {
        $locks = new Locks($client(RealServer::shared($backend)));
        $hold = $locks->acquire($this->key);
        $this->assertNull($locks->tryAcquire($this->key));
        $this->assertNull($locks->tryAcquire($this->key, wait: 0.15));
        $hold->renew(5);
        $hold->release();
        $this->assertFalse($this->exists($backend));
        $this->assertSame($backend, $locks->backend()->value);
    }

    public static function clients(): iterable
    {
        $kinds = [
            'phpredis' => fn (RealServer $server) => $server->redis(),
            'predis' => fn (RealServer $server) => $server->predis(),
            'server' => fn (RealServer $server) => $server->server(),
        ];
        foreach (self::backends() as $backend => $_) {
            foreach ($kinds as $kind => $client) {
                yield "$kind, $backend" => [$backend, $client];
            }
        }
    }

    public function testWhatTheProgramHasSetForItsOwnCommandsIsItsOwn(): void
    {
        $redis = RealServer::shared('module')->redis();
        $redis->setOption(\Redis::OPT_PREFIX, 'mine:');
        $redis->setOption(\Redis::OPT_SERIALIZER, \Redis::SERIALIZER_PHP);
        $redis->setOption(\Redis::OPT_READ_TIMEOUT, 0.2);
        $locks = new Locks($redis);
        $hold = $locks->acquire($this->key);
        $this->assertTrue($this->exists('module'), 'under its own name');
        $waited = self::seconds(fn () => $this->assertNull($locks->tryAcquire($this->key, wait: 0.5)));
        $this->assertGreaterThanOrEqual(0.5, $waited);
        $this->assertSame(0.2, $redis->getOption(\Redis::OPT_READ_TIMEOUT));
        $redis->multi();
        $redis->set('a', 1);
        $hold->release();
        $this->assertFalse($this->exists('module'), 'released while the program is in MULTI');
        $this->assertSame([true], $redis->exec());
    }

    /** @dataProvider backends */
    public function testAnotherDatabaseAndAPassword(string $backend): void
    {
        $server = RealServer::shared($backend);
        $server->call('ACL', 'SETUSER', 'bob', 'on', '>secret', '~*', '&*', '+@all');
        $redis = $server->redis();
        $redis->auth(['bob', 'secret']);
        $redis->select(3);
        $predis = $server->predis(['username' => 'bob', 'password' => 'secret', 'database' => 3]);
        // Predis 1 knows no users.
        $clients = [new Locks($redis), new Locks(new Server('127.0.0.1', $server->port, 'bob', 'secret', 3))];
        if (method_exists($predis, 'createCommand') && !str_starts_with(\Predis\Client::VERSION, '1.')) {
            $clients[] = new Locks($predis);
        }
        foreach ($clients as $locks) {
            $hold = $locks->acquire($this->key);
            $this->assertFalse($this->exists($backend), 'in another database');
            $this->assertNull($locks->tryAcquire($this->key, wait: 0.15));
            $hold->release();
        }
    }

    /** @dataProvider backends */
    public function testAWrongPasswordIsRefusedAlsoForAWaitForEver(string $backend): void
    {
        $server = RealServer::shared($backend);
        $locks = new Locks(new Server(port: $server->port, user: 'nobody', password: 'wrong'));
        try {
            $locks->acquire($this->key, wait: INF);
            $this->fail('acquired with a wrong password');
        } catch (RefusedException $e) {
            $this->assertSame('WRONGPASS', $e->errorCode);
        }
    }

    /** @dataProvider backends */
    public function testWithoutTheRightToAKeyItIsRefused(string $backend): void
    {
        $server = RealServer::shared($backend);
        $this->locks($backend)->acquire($this->key)->release();
        $server->call('ACL', 'SETUSER', 'eve', 'on', '>secret', '~other:*', '&*', '+@all');
        $locks = new Locks(new Server(port: $server->port, user: 'eve', password: 'secret'));
        try {
            $locks->acquire($this->key, wait: INF);
            $this->fail('acquired without the right to it');
        } catch (RefusedException $e) {
            $this->assertSame('NOPERM', $e->errorCode);
        }
    }

    public function testNobodyThere(): void
    {
        $locks = new Locks(new Server(port: RealServer::freePort()), timeout: 0.3);
        $took = self::seconds(function () use ($locks): void {
            try {
                $locks->acquire($this->key);
                $this->fail('acquired from nobody');
            } catch (ConnectionException $e) {
                $this->assertStringContainsString('no connection to', $e->getMessage());
            }
        });
        $this->assertLessThan(20, $took);
    }

    /** @dataProvider backends */
    public function testAServerThatStandsStill(string $backend): void
    {
        $server = RealServer::start($backend === 'module');
        $redis = $server->redis();
        $locks = new Locks($redis, timeout: 3);
        $locks->acquire('other')->release();
        $server->pause();
        $took = self::seconds(function () use ($locks): void {
            try {
                $locks->acquire($this->key, lease: 600);
                $this->fail('acquired from a server that stands still');
            } catch (ConnectionException) {
            }
        });
        $server->goOn();
        $this->assertLessThan(60, $took);
        Until::true(fn (): bool => $server->call('EXISTS', $this->key) === 0, 'nothing of it stays');
        $this->assertTrue($redis->set('x', 'y'), 'the program goes on with its connection');
        $this->assertSame('y', $redis->get('x'));
        $locks->acquire($this->key)->release();
        $server->stop();
    }

    /** @dataProvider backends */
    public function testAWaitOutlivesItsConnection(string $backend): void
    {
        $server = RealServer::start($backend === 'module');
        $locks = new Locks($server->redis());
        $hold = $locks->acquire($this->key, lease: 60);
        $waiter = new Program('wait', $server->port, $this->key, 60);
        $waiter->line();
        for ($round = 0; $round < 3; ++$round) {
            Until::true(fn (): bool => self::waits($server), 'it waits');
            $server->call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
            $server->call('CLIENT', 'KILL', 'TYPE', 'pubsub');
        }
        Until::true(fn (): bool => self::waits($server), 'it waits again');
        $hold->release();
        $this->assertStringStartsWith('has it', $waiter->line());
        $waiter->say('release');
        $this->assertSame('released', $waiter->rest());
        $server->stop();
    }

    /** @dataProvider backends */
    public function testAWaiterThatDiesLeavesNothing(string $backend): void
    {
        $locks = $this->locks($backend);
        $hold = $locks->acquire($this->key, lease: 60);
        $waiter = new Program('wait', RealServer::shared($backend)->port, $this->key, 60);
        $waiter->line();
        $this->untilWaiting($backend);
        $waiter->kill();
        $waiter->rest();
        $hold->release();
        $locks->acquire($this->key, wait: 30)->release();
        $this->assertFalse($this->exists($backend));
    }

    /** @dataProvider plain */
    public function testAServerThatForgetsTheLibraryGetsItAgain(string $backend): void
    {
        $server = RealServer::start(false);
        $locks = new Locks($server->redis(), backend: Backend::from($backend));
        $hold = $locks->acquire($this->key);
        $server->call('FUNCTION', 'FLUSH');
        $server->call('SCRIPT', 'FLUSH');
        $hold->renew();
        $server->call('FUNCTION', 'FLUSH');
        $server->call('SCRIPT', 'FLUSH');
        $this->assertNull($locks->tryAcquire($this->key, wait: 0.2));
        $server->call('FUNCTION', 'FLUSH');
        $server->call('SCRIPT', 'FLUSH');
        $hold->release();
        $this->assertSame(0, $server->call('EXISTS', $this->key));
        $server->stop();
    }

    public function testTheModuleIsRequired(): void
    {
        $locks = new Locks(RealServer::shared('functions')->redis(), backend: Backend::Module);
        $this->expectException(RefusedException::class);
        $this->expectExceptionMessage('the server has no rlock module: load librlock.so (loadmodule), see the README');
        $locks->acquire($this->key, wait: INF);
    }

    public function testWhoMayLoadNothingIsToldWhatToDo(): void
    {
        $server = RealServer::start(false);
        $server->call('ACL', 'SETUSER', 'eve', 'on', '>secret', '~*', '&*', '+@all', '-function|load', '-script|load');
        $locks = new Locks(new Server(port: $server->port, user: 'eve', password: 'secret'));
        try {
            $locks->acquire($this->key, wait: INF);
            $this->fail('acquired without a library');
        } catch (RefusedException $e) {
            $this->assertSame('NOPERM', $e->errorCode);
            $this->assertStringContainsString('redis-cli -x FUNCTION LOAD <rlock.lua', $e->getMessage());
        }
        $server->stop();
    }

    public function testTheModuleThatComesIsUsed(): void
    {
        $server = RealServer::start(false, ['--enable-module-command', 'yes']);
        $logger = new class () {
            public array $lines = [];

            public function info(string $text, array $context): void
            {
                $this->lines[] = strtr($text, ['{backend}' => $context['backend']]);
            }
        };
        $before = new Locks($server->redis(), logger: $logger);
        $hold = $before->acquire($this->key, lease: 60);
        $this->assertSame(Backend::Functions, $before->backend());
        $this->assertCount(1, $logger->lines);
        $server->call('MODULE', 'LOAD', getenv('RLOCK_MODULE'));
        $this->assertNull($before->tryAcquire($this->key, wait: 0.3), 'by the functions, which ask the module');
        $after = new Locks($server->redis());
        $this->assertNull($after->tryAcquire($this->key));
        $this->assertSame(Backend::Module, $after->backend());
        $hold->release();
        $after->acquire($this->key)->release();
        $server->stop();
    }

    private static function waits(RealServer $server): bool
    {
        // Blocked by the module, or subscribed.
        return preg_match('/^blocked_clients:[1-9]/m', $server->call('INFO', 'clients')) === 1
            || str_contains($server->call('CLIENT', 'LIST', 'TYPE', 'pubsub'), 'id=');
    }
}

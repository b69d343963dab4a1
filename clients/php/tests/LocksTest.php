<?php

declare(strict_types=1);

namespace Rlock\Tests;

use Rlock\Exception\LostException;
use Rlock\Exception\NotAcquiredException;
use Rlock\Exception\RefusedException;
use Rlock\Hold;
use Rlock\Locks;
use Rlock\Mode;
use Rlock\Tests\Support\BackendTestCase;
use Rlock\Tests\Support\Program;
use Rlock\Tests\Support\RealServer;

final class LocksTest extends BackendTestCase
{
    /** @dataProvider backends */
    public function testOneHasIt(string $backend): void
    {
        $locks = $this->locks($backend);
        $hold = $locks->acquire($this->key);
        $this->assertSame($backend, $locks->backend()->value);
        $this->assertSame([$this->key, [$this->key]], [$hold->key, $hold->keys]);
        $this->assertNull($locks->tryAcquire($this->key));
        try {
            $locks->acquire($this->key);
            $this->fail('acquired twice');
        } catch (NotAcquiredException $e) {
            $this->assertSame($this->key, $e->key);
        }
        $hold->release();
        $hold->release();
        $this->assertFalse($this->exists($backend));
        $next = $locks->acquire($this->key);
        $this->assertGreaterThan($hold->token, $next->token);
        $this->assertNotSame($hold->owner, $next->owner);
        $next->release();
    }

    /** @dataProvider backends */
    public function testAWaitThatEnds(string $backend): void
    {
        $locks = $this->locks($backend);
        $hold = $locks->acquire($this->key);
        $waited = self::seconds(fn () => $this->assertNull($locks->tryAcquire($this->key, wait: 0.3)));
        $this->assertGreaterThanOrEqual(0.3, $waited);
        $this->assertLessThan(20, $waited);
        $hold->release();
        $this->assertSame(0, RealServer::shared($backend)->call('EXISTS', "rlock1_queue:{{$this->key}}"));
    }

    /** @dataProvider backends */
    public function testAWaiterGetsItAtItsRelease(string $backend): void
    {
        $locks = $this->locks($backend);
        $hold = $locks->acquire($this->key, lease: 60);
        $waiter = new Program('wait', RealServer::shared($backend)->port, $this->key, 30);
        $this->assertSame('waits', $waiter->line());
        $this->untilWaiting($backend);
        $released = microtime(true);
        $hold->release();
        $this->assertStringStartsWith('has it', $waiter->line());
        $this->assertLessThan(20, microtime(true) - $released);
        $waiter->say('release');
        $this->assertSame('released', $waiter->rest());
        $this->assertFalse($this->exists($backend));
    }

    /** @dataProvider backends */
    public function testAWaiterGetsItWhenALeaseEnds(string $backend): void
    {
        $locks = $this->locks($backend);
        $locks->acquire($this->key, lease: 2);
        $hold = $locks->acquire($this->key, lease: 2);
        $next = $locks->acquire($this->key, wait: 30, lease: 50);
        $this->assertTrue($hold->isLost());
        $this->assertSame('lease', $hold->lostReason());
        try {
            $hold->release();
            $this->fail('released what was lost');
        } catch (LostException $e) {
            $this->assertSame('lease', $e->reason);
        }
        $this->assertGreaterThan(20, $next->remaining());
        $next->release();
    }

    /** @dataProvider backends */
    public function testRenew(string $backend): void
    {
        $locks = $this->locks($backend);
        $hold = $locks->acquire($this->key, lease: 20);
        $hold->renew(60);
        $this->assertGreaterThan(50_000, RealServer::shared($backend)->call('PTTL', $this->key));
        $this->assertGreaterThan(50, $hold->remaining());
        $hold->release();
        $this->expectExceptionMessage('released');
        $hold->renew();
    }

    /** @dataProvider backends */
    public function testWhatWasDeletedIsLost(string $backend): void
    {
        $server = RealServer::shared($backend);
        foreach (['renew', 'release'] as $does) {
            $hold = $this->locks($backend)->acquire($this->key);
            $server->call('DEL', $this->key);
            try {
                $hold->$does();
                $this->fail("$does of what was lost");
            } catch (LostException $e) {
                $this->assertSame('deleted', $e->reason);
                $this->assertSame('deleted', $hold->lostReason());
            }
        }
        $hold = $this->locks($backend)->acquire($this->key);
        $server->call('SET', $this->key, 'something else');
        try {
            $hold->renew();
            $this->fail('renewed what was overwritten');
        } catch (LostException $e) {
            $this->assertSame('overwritten', $e->reason);
        }
        try {
            $this->locks($backend)->acquire($this->key);
            $this->fail('acquired what is no lock');
        } catch (RefusedException $e) {
            $this->assertSame('WRONGTYPE', $e->errorCode);
        }
    }

    /** @dataProvider backends */
    public function testReadersShareAndAWriterIsAlone(string $backend): void
    {
        $locks = $this->locks($backend);
        $first = $locks->acquire($this->key, mode: Mode::Read);
        $second = $locks->acquire($this->key, mode: Mode::Read);
        $this->assertNull($locks->tryAcquire($this->key, mode: Mode::Write));
        $this->assertNull($locks->tryAcquire($this->key, wait: 0.15, mode: Mode::Write));
        $first->release();
        $second->renew(5);
        $second->release();
        $writer = $locks->acquire($this->key, mode: Mode::Write);
        $this->assertNull($locks->tryAcquire($this->key, wait: 0.15, mode: Mode::Read));
        $writer->release();
        $this->assertFalse($this->exists($backend));
    }

    /** @dataProvider backends */
    public function testPermits(string $backend): void
    {
        $locks = $this->locks($backend);
        $three = $locks->acquire($this->key, limit: 4, permits: 3);
        $one = $locks->acquire($this->key, limit: 4);
        $this->assertNull($locks->tryAcquire($this->key, wait: 0.15, limit: 4));
        $three->renew();
        $three->release();
        $three = $locks->acquire($this->key, wait: 5, limit: 4, permits: 3);
        $one->release();
        $three->release();
        $this->assertFalse($this->exists($backend));
    }

    /** @dataProvider backends */
    public function testSeveralKeysAreAllOrNone(string $backend): void
    {
        $locks = $this->locks($backend);
        $keys = ["{$this->key}:1", "{$this->key}:2"];
        $other = $locks->acquire($keys[1]);
        $this->assertNull($locks->tryAcquire($keys, wait: 0.2));
        $this->assertFalse($this->exists($backend, $keys[0]));
        $other->release();
        $both = $locks->acquire($keys, wait: 5);
        $both->renew();
        RealServer::shared($backend)->call('DEL', $keys[0]);
        try {
            $both->renew();
            $this->fail('one of them was lost');
        } catch (LostException $e) {
            $this->assertSame($keys[0], $e->key);
        }
        $this->assertFalse($this->exists($backend, $keys[1]), 'the other one is released');
        $both = $locks->acquire($keys);
        RealServer::shared($backend)->call('DEL', $keys[0]);
        $this->expectException(LostException::class);
        $both->release();
    }

    /** What they take is in their signatures, and passed on from one to the next. */
    public function testAllThreeTakeTheSame(): void
    {
        $takes = fn (string $method): array => array_map(
            fn (\ReflectionParameter $one): array => [$one->name, (string) $one->getType(), $one->getDefaultValue()],
            array_values(array_filter(
                (new \ReflectionMethod(Locks::class, $method))->getParameters(),
                fn (\ReflectionParameter $one): bool => $one->isOptional(),
            )),
        );
        $this->assertCount(5, $takes('acquire'));
        $this->assertSame($takes('acquire'), $takes('tryAcquire'));
        $this->assertSame($takes('acquire'), $takes('with'));
        $locks = $this->locks('functions');
        $body = function () use ($locks): void {
            $this->assertNull($locks->tryAcquire($this->key, permits: 2, limit: 3));
            $locks->acquire($this->key, lease: 5, limit: 3)->release();
            $this->assertNull($locks->tryAcquire($this->key, 0, 5));
        };
        $locks->with(body: $body, key: $this->key, permits: 2, limit: 3);
        $locks->with($this->key, $body, 0, 5, null, 3, 2);
    }

    /** @dataProvider backends */
    public function testABody(string $backend): void
    {
        $locks = $this->locks($backend);
        $this->assertSame(7, $locks->with($this->key, fn (Hold $hold): int => $hold->token > 0 ? 7 : 0));
        $this->assertFalse($this->exists($backend));
        try {
            $locks->with($this->key, fn () => throw new \DomainException('mine'));
        } catch (\DomainException $e) {
            $this->assertSame('mine', $e->getMessage());
        }
        $this->assertFalse($this->exists($backend));
        $this->expectException(LostException::class);
        $locks->with($this->key, fn () => RealServer::shared($backend)->call('DEL', $this->key));
    }

    /** @dataProvider backends */
    public function testAHoldThatIsLetGoIsReleased(string $backend): void
    {
        $locks = $this->locks($backend);
        $hold = $locks->acquire($this->key);
        unset($hold);
        $this->assertFalse($this->exists($backend));
        $locks->acquire($this->key, mode: Mode::Read);
        $this->assertFalse($this->exists($backend));
    }

    /**
     * Those who release and acquire again at once do not keep out the one who waits.
     *
     * @dataProvider backends
     */
    public function testNobodyStarves(string $backend): void
    {
        $port = RealServer::shared($backend)->port;
        $busy = [new Program('busy', $port, $this->key), new Program('busy', $port, $this->key)];
        array_map(fn (Program $one) => $this->assertSame('busy', $one->line()), $busy);
        $waits = [];
        for ($round = 0; $round < 5; ++$round) {
            $waits[] = self::seconds(fn () => $this->locks($backend)->acquire($this->key, wait: 120)->release());
        }
        array_map(fn (Program $one) => $one->kill(), $busy);
        array_map(fn (Program $one) => $one->rest(), $busy);
        $this->assertLessThan(60, max($waits));
    }

    /** @dataProvider wrong */
    public function testWhatIsWrongIsRefusedBeforeAnythingIsSent(string $says, callable $body): void
    {
        // Nobody listens there.
        $locks = new Locks(new \Rlock\Server(port: 1), timeout: 0.2);
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage($says);
        $body($locks);
    }

    public static function wrong(): array
    {
        return [
            'no key' => ['not empty', fn (Locks $locks) => $locks->acquire('')],
            'no keys' => ['at least one', fn (Locks $locks) => $locks->acquire([])],
            'twice' => ['twice', fn (Locks $locks) => $locks->acquire(['a', 'b', 'a'])],
            'no text' => ['a text', fn (Locks $locks) => $locks->acquire(['a', 5])],
            'long' => ['512 KB', fn (Locks $locks) => $locks->acquire(str_repeat('a', 600_000))],
            'lease' => ['the lease', fn (Locks $locks) => $locks->acquire('a', lease: 0)],
            'no number' => ['the lease', fn (Locks $locks) => $locks->acquire('a', lease: NAN)],
            'endless' => ['the lease', fn (Locks $locks) => $locks->acquire('a', lease: INF)],
            'wait' => ['the wait', fn (Locks $locks) => $locks->acquire('a', wait: -1)],
            'both' => ['not both', fn (Locks $locks) => $locks->acquire('a', mode: Mode::Read, limit: 2)],
            'many' => ['several keys', fn (Locks $locks) => $locks->acquire(['a', 'b'], limit: 2)],
            'permits' => ['1 to the limit', fn (Locks $locks) => $locks->acquire('a', limit: 2, permits: 3)],
            'no limit' => ['1 to the limit', fn (Locks $locks) => $locks->acquire('a', permits: 2)],
            'client' => ['cannot be used', fn () => new Locks(new \stdClass())],
            'no server' => ['cannot be used', fn () => new Locks([])],
            'never connected' => ['connect()', fn () => new Locks(new \Redis())],
            'timeout' => ['the timeout', fn () => new Locks(new \Rlock\Server(), timeout: 0)],
        ];
    }
}

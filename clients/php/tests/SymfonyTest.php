<?php

declare(strict_types=1);

namespace Rlock\Tests;

use Rlock\Symfony\RlockStore;
use Rlock\Tests\Support\BackendTestCase;
use Rlock\Tests\Support\RealServer;
use Symfony\Component\Lock\BlockingStoreInterface;
use Symfony\Component\Lock\Exception\InvalidTtlException;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockExpiredException;
use Symfony\Component\Lock\Exception\LockStorageException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\SharedLockStoreInterface;

final class SymfonyTest extends BackendTestCase
{
    protected function setUp(): void
    {
        parent::setUp();
        if (!interface_exists(SharedLockStoreInterface::class)) {
            $this->markTestSkipped('symfony/lock is not installed');
        }
    }

    /** @dataProvider backends */
    public function testOneKeyHasIt(string $backend): void
    {
        $store = $this->store($backend);
        $this->assertInstanceOf(BlockingStoreInterface::class, $store);
        [$first, $second] = $this->keys(2);
        $this->assertFalse($store->exists($first));
        $store->save($first);
        $store->save($first);
        $this->assertSame([true, false], [$store->exists($first), $store->exists($second)]);
        $this->assertConflict(fn () => $store->save($second));
        $this->assertConflict(fn () => $store->putOffExpiration($second, 5));
        $store->delete($second);
        $this->assertTrue($store->exists($first));
        $store->delete($first);
        $this->assertFalse($this->exists($backend));
        $store->save($second);
        $this->assertSame([false, true], [$store->exists($first), $store->exists($second)]);
        $store->delete($second);
    }

    /** @dataProvider backends */
    public function testAKeyThatWaits(string $backend): void
    {
        $store = $this->store($backend, 3);
        [$first, $second] = $this->keys(2);
        $store->save($first);
        $store->waitAndSave($second);
        $this->assertFalse($store->exists($first), 'its lease had ended');
        $this->assertGreaterThan(0, $second->getRemainingLifetime());
        $this->assertConflict(fn () => $store->putOffExpiration($first, 5));
        $store->delete($second);
        $first->resetLifetime();
        $store->waitAndSaveRead($first);
        $store->delete($first);
    }

    /** @dataProvider backends */
    public function testReadersAndWriters(string $backend): void
    {
        $store = $this->store($backend);
        [$first, $second, $third] = $this->keys(3);
        $store->saveRead($first);
        $store->saveRead($second);
        $this->assertConflict(fn () => $store->save($third));
        $this->assertConflict(fn () => $store->save($first));
        $this->assertTrue($store->exists($first), 'it reads on');
        $store->delete($second);
        $store->save($first);
        $this->assertConflict(fn () => $store->saveRead($second));
        $store->putOffExpiration($first, 5);
        $store->saveRead($first);
        $store->saveRead($second);
        $this->assertSame([true, true], [$store->exists($first), $store->exists($second)]);
        $store->delete($first);
        $store->delete($second);
        $this->assertFalse($this->exists($backend));
    }

    /** Two readers that wait to write would wait for ever. */
    public function testADeadlockIsAConflict(): void
    {
        $store = $this->store('module');
        [$first, $second] = $this->keys(2);
        $store->saveRead($first);
        $store->saveRead($second);
        $owner = $first->getState(RlockStore::class)['owner'];
        $other = new \Redis();
        $other->connect('127.0.0.1', RealServer::shared('module')->port, 5);
        // The first one waits, by hand, for PHP would wait with it.
        $socket = stream_socket_client('tcp://127.0.0.1:' . RealServer::shared('module')->port);
        fwrite($socket, "RLOCK.ACQUIRE {$this->key} $owner 60000 WRITE BLOCK 60000\r\n");
        $this->untilWaiting('module');
        $this->assertConflict(fn () => $store->waitAndSave($second));
        $store->delete($second);
        $this->assertStringStartsWith(':', fgets($socket));
    }

    /** @dataProvider backends */
    public function testAKeyMayGoToAnotherProcess(string $backend): void
    {
        [$key] = $this->keys(1);
        $this->store($backend)->save($key);
        $same = unserialize(serialize($key));
        $this->assertTrue($this->store($backend)->exists($same));
        $this->store($backend)->putOffExpiration($same, 5);
        $this->store($backend)->delete($same);
        $this->assertFalse($this->store($backend)->exists($key));
    }

    /** @dataProvider backends */
    public function testWhatHasExpired(string $backend): void
    {
        [$first, $second] = $this->keys(2);
        $store = $this->store($backend);
        $first->reduceLifetime(0);
        try {
            $store->save($first);
            $this->fail('saved an expired key');
        } catch (LockExpiredException) {
        }
        $store->save($second);
        try {
            $store->putOffExpiration($second, 1e-6);
            $this->fail('put off to now');
        } catch (LockExpiredException) {
        }
        $this->assertFalse($this->exists($backend));
    }

    /** @dataProvider backends */
    public function testByTheFactory(string $backend): void
    {
        $factory = new LockFactory($this->store($backend));
        $lock = $factory->createLock($this->key, 60);
        $this->assertTrue($lock->acquire());
        $this->assertFalse($factory->createLock($this->key)->acquire());
        $lock->refresh();
        $this->assertTrue($lock->isAcquired());
        $lock->release();
        $reader = $factory->createLock($this->key, 60);
        $this->assertTrue($reader->acquireRead(true));
        $this->assertTrue($factory->createLock($this->key, 60)->acquireRead());
        unset($lock, $reader);
        $this->assertFalse($this->exists($backend), 'autorelease');
    }

    /** @dataProvider backends */
    public function testOtherErrors(string $backend): void
    {
        [$key] = $this->keys(1);
        RealServer::shared($backend)->call('SET', $this->key, 'a text');
        $store = $this->store($backend);
        try {
            $store->save($key);
            $this->fail('saved over what is no lock');
        } catch (LockStorageException $e) {
            $this->assertStringStartsWith('WRONGTYPE', $e->getMessage());
        }
        $this->assertFalse($store->exists($key));
        $this->expectException(InvalidTtlException::class);
        $this->store($backend, 0);
    }

    private function store(string $backend, float $ttl = 300): RlockStore
    {
        return new RlockStore(RealServer::shared($backend)->redis(), $ttl);
    }

    /** @return list<Key> */
    private function keys(int $count): array
    {
        return array_map(fn () => new Key($this->key), range(1, $count));
    }

    private function assertConflict(callable $does): void
    {
        try {
            $does();
            $this->fail('no conflict');
        } catch (LockConflictedException) {
            $this->addToAssertionCount(1);
        }
    }
}

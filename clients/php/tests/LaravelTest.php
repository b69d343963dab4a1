<?php

declare(strict_types=1);

namespace Rlock\Tests;

use Illuminate\Cache\CacheManager;
use Illuminate\Console\Scheduling\CacheEventMutex;
use Illuminate\Console\Scheduling\CacheSchedulingMutex;
use Illuminate\Console\Scheduling\Event;
use Illuminate\Contracts\Cache\LockTimeoutException;
use Illuminate\Queue\Middleware\WithoutOverlapping;
use Illuminate\Support\Facades\Cache;
use Rlock\Laravel\RlockStore;
use Rlock\Tests\Support\BackendTestCase;
use Rlock\Tests\Support\LaravelApp;
use Rlock\Tests\Support\Program;
use Rlock\Tests\Support\RealServer;

final class LaravelTest extends BackendTestCase
{
    protected function setUp(): void
    {
        parent::setUp();
        if (!class_exists(CacheManager::class)) {
            $this->markTestSkipped('illuminate/cache is not installed');
        }
        // Predis 1 does with prefixes what PHP 8.2 says is old.
        error_reporting(E_ALL & ~E_DEPRECATED);
    }

    protected function tearDown(): void
    {
        error_reporting(E_ALL);
    }

    /** @dataProvider clients */
    public function testOneHasIt(string $backend, string $client): void
    {
        $this->app($backend, $client);
        $lock = Cache::lock($this->key, 10);
        $this->assertTrue($lock->get());
        $this->assertFalse($lock->get(), 'nor does its owner get it twice');
        $this->assertFalse(Cache::lock($this->key, 10)->get());
        $this->assertTrue($this->exists($backend, "laravel_cache:{$this->key}"));
        $this->assertTrue($lock->release());
        $this->assertFalse($lock->release());
        $this->assertSame('done', Cache::lock($this->key, 10)->get(fn () => 'done'));
        $this->assertFalse($this->exists($backend, "laravel_cache:{$this->key}"));
    }

    public static function clients(): iterable
    {
        foreach (self::backends() as $backend => $_) {
            yield "phpredis, $backend" => [$backend, 'phpredis'];
            yield "predis, $backend" => [$backend, 'predis'];
        }
    }

    /** @dataProvider backends */
    public function testBlock(string $backend): void
    {
        $this->app($backend);
        $first = Cache::lock($this->key, 60);
        $this->assertTrue($first->block(1));
        $waited = self::seconds(function (): void {
            try {
                Cache::lock($this->key, 60)->block(1);
                $this->fail('acquired');
            } catch (LockTimeoutException) {
            }
        });
        $this->assertGreaterThanOrEqual(1, $waited);
        // Another process releases it.
        $waiter = new Program('laravel', RealServer::shared($backend)->port, $this->key, $first->owner());
        $this->assertSame('there', $waiter->line());
        $waiter->say('release');
        $this->assertSame('done', Cache::lock($this->key, 60)->block(30, fn () => 'done'));
        $this->assertSame('released', $waiter->rest());
        $this->assertTrue(Cache::lock($this->key, 60)->get());
        Cache::lock($this->key)->forceRelease();
        $this->assertTrue(Cache::lock($this->key, 60)->get());
    }

    /** @dataProvider backends */
    public function testAnOwnerIsRestored(string $backend): void
    {
        $this->app($backend);
        $lock = Cache::lock($this->key, 10, 'web-1');
        $this->assertTrue($lock->get());
        $this->assertSame('web-1', $lock->owner());
        $this->assertFalse(Cache::restoreLock($this->key, 'web-2')->release());
        $this->assertFalse(Cache::restoreLock($this->key, 'web-1')->get());
        $this->assertTrue(Cache::restoreLock($this->key, 'web-1')->refresh(600));
        $this->assertGreaterThan(500_000, RealServer::shared($backend)->call('PTTL', "laravel_cache:{$this->key}"));
        $this->assertTrue(Cache::restoreLock($this->key, 'web-1')->release());
        $this->assertFalse($lock->refresh());
        $this->assertFalse($lock->release());
    }

    /** @dataProvider backends */
    public function testALockOutlivesItsObjectAndHasNoEndIfItHasNoSeconds(string $backend): void
    {
        $this->app($backend);
        Cache::lock($this->key)->get();
        $this->assertGreaterThan(3e12, RealServer::shared($backend)->call('PTTL', "laravel_cache:{$this->key}"));
        Cache::lock($this->key)->forceRelease();
        Cache::lock($this->key, 0.3)->get();
        $this->assertTrue(Cache::lock($this->key, 10)->block(30));
    }

    /** @dataProvider backends */
    public function testThePrefixOfTheConnectionCounts(string $backend): void
    {
        foreach (['phpredis', 'predis'] as $client) {
            LaravelApp::make(RealServer::shared($backend)->port, $client, 'app_');
            Cache::lock($this->key, 10)->get(function () use ($backend): void {
                $this->assertTrue($this->exists($backend, "app_laravel_cache:{$this->key}"));
            });
        }
    }

    /** @dataProvider backends */
    public function testWithoutOverlappingOfAJob(string $backend): void
    {
        $this->app($backend);
        $job = new class () {
            public int $released = 0;

            public function release(int $delay): void
            {
                ++$this->released;
            }
        };
        $ran = 0;
        (new WithoutOverlapping($this->key))->handle($job, function () use ($job, &$ran): void {
            ++$ran;
            (new WithoutOverlapping($this->key))->handle($job, function () use (&$ran): void {
                ++$ran;
            });
        });
        $this->assertSame([1, 1], [$ran, $job->released]);
        (new WithoutOverlapping($this->key))->handle($job, function () use (&$ran): void {
            ++$ran;
        });
        $this->assertSame(2, $ran);
    }

    /** @dataProvider backends */
    public function testOfTheScheduler(string $backend): void
    {
        $app = $this->app($backend);
        $mutex = new CacheEventMutex($app['cache']);
        $event = new Event($mutex, $this->key);
        $event->withoutOverlapping(5);
        $this->assertTrue($mutex->create($event));
        $this->assertFalse($mutex->create($event));
        $this->assertTrue($mutex->exists($event));
        $mutex->forget($event);
        $this->assertFalse($mutex->exists($event));
        // onOneServer
        $one = new CacheSchedulingMutex($app['cache']);
        $this->assertTrue($one->create($event, new \DateTime('2026-01-01 10:00')));
        $this->assertFalse($one->create($event, new \DateTime('2026-01-01 10:00')));
        $this->assertTrue($one->create($event, new \DateTime('2026-01-01 11:00')));
    }

    /** @dataProvider clients */
    public function testTheCacheIsThatOfRedis(string $backend, string $client): void
    {
        $app = $this->app($backend, $client);
        $this->assertInstanceOf(RlockStore::class, $app['cache']->store()->getStore());
        Cache::put($this->key, ['a' => 1], 60);
        $this->assertSame(['a' => 1], Cache::get($this->key));
        Cache::tags('some')->put('x', 5, 60);
        $this->assertEquals(5, Cache::tags('some')->get('x'));
        $this->assertTrue(Cache::forget($this->key));
        $this->assertSame('default', Cache::lock($this->key)->getConnectionName());
        $app['config']->set('cache.stores.rlock.lock_connection', 'locks');
        $this->assertSame('locks', Cache::store('rlock')->lock($this->key)->getConnectionName());
    }

    private function app(string $backend, string $client = 'phpredis'): \Illuminate\Container\Container
    {
        return LaravelApp::make(RealServer::shared($backend)->port, $client);
    }
}

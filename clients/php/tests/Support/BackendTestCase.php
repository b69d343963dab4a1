<?php

declare(strict_types=1);

namespace Rlock\Tests\Support;

use PHPUnit\Framework\TestCase;
use Rlock\Locks;

/** Each test on a server with the module, one with functions, and one that has scripts alone. */
abstract class BackendTestCase extends TestCase
{
    protected string $key;

    protected function setUp(): void
    {
        $this->key = 'php:' . bin2hex(random_bytes(8));
    }

    public static function backends(): array
    {
        return ['module' => ['module'], 'functions' => ['functions'], 'script' => ['script']];
    }

    /** Those without the module. */
    public static function plain(): array
    {
        return ['functions' => ['functions'], 'script' => ['script']];
    }

    protected function locks(string $backend, float $timeout = 5): Locks
    {
        return new Locks(RealServer::shared($backend)->redis(), $timeout);
    }

    protected function exists(string $backend, ?string $key = null): bool
    {
        return RealServer::shared($backend)->call('EXISTS', $key ?? $this->key) === 1;
    }

    protected static function seconds(callable $body): float
    {
        $began = microtime(true);
        $body();
        return microtime(true) - $began;
    }

    /** Until one waits for the key, and without the module has a place in its queue. */
    protected function untilWaiting(string $backend): void
    {
        $server = RealServer::shared($backend);
        Until::true(fn (): bool => $backend === 'module'
            ? $server->call('RLOCK.INFO', $this->key)[5] === 1
            : $server->call('ZCARD', "rlock1_queue:{{$this->key}}") === 1, 'somebody waits');
    }
}

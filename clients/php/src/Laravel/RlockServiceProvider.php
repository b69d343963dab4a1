<?php

declare(strict_types=1);

namespace Rlock\Laravel;

use Illuminate\Cache\CacheManager;
use Illuminate\Support\ServiceProvider;
use Rlock\Backend;
use Rlock\Server;

/** Registers the cache driver "rlock". */
class RlockServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $store = self::store(...);
        $this->callAfterResolving('cache', static function (CacheManager $cache) use ($store): void {
            // Not static: the manager binds it to itself.
            $cache->extend('rlock', fn ($app, array $config) => $cache->repository($store($app, $config)));
        });
    }

    /** @param array $config as for the driver "redis", and "timeout", "backend", "server" */
    private static function store($app, array $config): RlockStore
    {
        $connection = $config['connection'] ?? 'default';
        $store = new RlockStore(
            $app['redis'],
            $config['prefix'] ?? $app['config']['cache.prefix'] ?? '',
            $connection,
            (float) ($config['timeout'] ?? 5.0),
            isset($config['backend']) ? Backend::from($config['backend']) : null,
            isset($config['server']) ? new Server(...$config['server']) : null,
        );
        return $store->setLockConnection($config['lock_connection'] ?? $connection);
    }
}

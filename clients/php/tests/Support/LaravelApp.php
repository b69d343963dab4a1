<?php

declare(strict_types=1);

namespace Rlock\Tests\Support;

use Illuminate\Cache\CacheManager;
use Illuminate\Config\Repository;
use Illuminate\Container\Container;
use Illuminate\Contracts\Cache\Factory;
use Illuminate\Redis\RedisManager;
use Illuminate\Support\Facades\Facade;
use Rlock\Laravel\RlockServiceProvider;

/** As much of a Laravel application as its cache and its locks need. */
final class LaravelApp
{
    /** @param string $client phpredis or predis */
    public static function make(int $port, string $client = 'phpredis', string $prefix = '', int $database = 0): Container
    {
        $app = new Container();
        Container::setInstance($app);
        $store = ['driver' => 'rlock', 'connection' => 'default', 'timeout' => 5];
        $app->instance('config', new Repository([
            'cache' => ['default' => 'redis', 'prefix' => 'laravel_cache', 'stores' => ['redis' => $store, 'rlock' => $store]],
            'database' => ['redis' => [
                'client' => $client,
                'options' => ['prefix' => $prefix],
                'default' => ['host' => '127.0.0.1', 'port' => $port, 'database' => $database],
                'locks' => ['host' => '127.0.0.1', 'port' => $port, 'database' => $database],
            ]],
        ]));
        $app->singleton('redis', static fn ($app) => new RedisManager(
            $app, $app['config']['database.redis.client'], array_diff_key($app['config']['database.redis'], ['client' => 1])
        ));
        $app->singleton('cache', static fn ($app) => new CacheManager($app));
        $app->alias('cache', Factory::class);
        $app->bind(\Illuminate\Contracts\Cache\Repository::class, static fn ($app) => $app['cache']->store());
        (new RlockServiceProvider($app))->register();
        Facade::clearResolvedInstances();
        Facade::setFacadeApplication($app);
        return $app;
    }
}

<?php

declare(strict_types=1);

namespace Rlock\Laravel;

use Illuminate\Cache\RedisStore;
use Illuminate\Contracts\Redis\Factory;
use Rlock\Backend;
use Rlock\Internal\Engine;
use Rlock\Server;

/** Laravel's cache in Redis, with the locks of rlock. */
class RlockStore extends RedisStore
{
    /** @var \WeakMap<object, Engine> */
    private \WeakMap $engines;

    /**
     * @param float        $timeout    as for Rlock\Locks, and what follows
     * @param Backend|null $backend
     * @param Server|null  $server
     */
    public function __construct(
        Factory $redis,
        string $prefix = '',
        string $connection = 'default',
        private readonly float $timeout = 5.0,
        private readonly ?Backend $backend = null,
        private readonly ?Server $server = null,
    ) {
        parent::__construct($redis, $prefix, $connection);
        $this->engines = new \WeakMap();
    }

    /**
     * @param string         $name
     * @param int|float|null $seconds 0: until it is released
     * @param string|null    $owner
     */
    public function lock($name, $seconds = 0, $owner = null): Lock
    {
        $connection = $this->lockConnection();
        $client = $connection->client();
        $this->engines[$client] ??= Engine::over($client, $this->timeout, $this->backend, $this->server);
        $key = $this->connectionPrefix($client) . $this->getPrefix() . $name;
        return new Lock($this->engines[$client], $connection->getName(), $key, $seconds, $owner);
    }

    /**
     * @param string $name
     * @param string $owner
     */
    public function restoreLock($name, $owner): Lock
    {
        return $this->lock($name, 0, $owner);
    }

    /** What the connection puts before all keys, so that two applications on one server have locks of their own. */
    private function connectionPrefix(object $client): string
    {
        if ($client instanceof \Redis || $client instanceof \RedisCluster) {
            return (string) $client->getOption(\Redis::OPT_PREFIX);
        }
        $prefix = $client->getOptions()->prefix ?? null;
        return $prefix === null ? '' : (string) $prefix->getPrefix();
    }
}

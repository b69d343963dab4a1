<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Predis\Client;
use Predis\Connection\NodeConnectionInterface;
use Predis\Connection\ParametersInterface;
use Rlock\Server;

/** @internal What can be read from the client that a program has: where its server is, and how to log in. */
final class Clients
{
    private const RIGHT = 'give Locks a \Redis, a \RedisCluster, a Predis\Client, a Rlock\Server, or a list of Rlock\Server '
        . 'for a cluster';

    /** @param Server|\Closure(): Server|null $server instead of what can be read */
    public static function link(object|array $client, Server|\Closure|null $server): Link
    {
        $said = $server instanceof Server ? static fn (): Server => $server : $server;
        if ($client instanceof \Redis) {
            $isConnected = $said !== null || $client->getHost() !== false;
            $isConnected || throw new \InvalidArgumentException('this \Redis was never connected: call connect() first');
            return new Single(new PhpRedis($client), $said ?? static fn (): Server => self::ofPhpRedis($client));
        }
        if ($client instanceof \RedisCluster) {
            return new Cluster(static fn (): array => self::ofRedisCluster($client, $said === null ? new Server() : $said()));
        }
        if ($client instanceof Server) {
            return new Single(null, $said ?? static fn (): Server => $client);
        }
        if (is_array($client) && $client !== [] && array_filter($client, static fn ($one) => !$one instanceof Server) === []) {
            return new Cluster(static fn (): array => array_values($client));
        }
        if ($client instanceof Client) {
            return self::ofPredis($client, $said);
        }
        $kind = is_object($client) ? $client::class : 'an array of something else';
        throw new \InvalidArgumentException("$kind cannot be used: " . self::RIGHT);
    }

    private static function ofPhpRedis(\Redis $redis): Server
    {
        $auth = $redis->getAuth();
        [$user, $password] = match (true) {
            is_array($auth) && count($auth) > 1 => array_values($auth),
            is_array($auth) => [null, array_values($auth)[0] ?? null],
            is_string($auth) => [null, $auth],
            default => [null, null],
        };
        $isTls = (bool) preg_match('~^(tls|ssl)://~', $redis->getHost());
        $host = preg_replace('~^\w+://~', '', $redis->getHost());
        return new Server($host, (int) $redis->getPort(), $user, $password, (int) $redis->getDbNum(), $isTls ? [] : null);
    }

    /** @return list<Server> */
    private static function ofRedisCluster(\RedisCluster $cluster, Server $base): array
    {
        return array_map(static fn (array $node): Server => $base->at($node[0], (int) $node[1]), $cluster->_masters());
    }

    private static function ofPredis(Client $client, ?\Closure $said): Link
    {
        $connection = $client->getConnection();
        if ($connection instanceof NodeConnectionInterface) {
            $read = static fn (): Server => self::ofParameters($connection->getParameters());
            return new Single(new Predis($client), $said ?? $read);
        }
        $name = $connection::class;
        if (str_ends_with($name, '\RedisCluster') && $connection instanceof \IteratorAggregate) {
            return new Cluster(static function () use ($connection, $said): array {
                $seeds = [];
                foreach ($connection as $node) {
                    $seed = self::ofParameters($node->getParameters());
                    $seeds[] = $said === null ? $seed : $said()->at($seed->host, $seed->port);
                }
                return $seeds;
            });
        }
        if (method_exists($connection, 'getMaster')) {
            return new Single(null, $said ?? static function () use ($connection): Server {
                // Sentinel knows which one is the master now.
                if (method_exists($connection, 'querySentinel')) {
                    $connection->querySentinel();
                }
                return self::ofParameters($connection->getMaster()->getParameters());
            });
        }
        throw new \InvalidArgumentException("Predis with $name cannot be used, for a lock needs one server: " . self::RIGHT);
    }

    private static function ofParameters(ParametersInterface $of): Server
    {
        $tls = in_array($of->scheme, ['tls', 'rediss'], true) ? (array) ($of->ssl ?? []) : null;
        $host = $of->scheme === 'unix' ? $of->path : $of->host;
        $text = static fn (?string $value): ?string => $value === null || $value === '' ? null : $value;
        return new Server($host, (int) $of->port, $text($of->username), $text($of->password), (int) $of->database, $tls);
    }
}

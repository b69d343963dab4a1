<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Exception\RefusedException;
use Rlock\Server;

/** @internal One server. */
final class Single implements Link
{
    private ?Stream $idle = null;
    private readonly int $pid;

    /**
     * @param (Connection&object)|null   $given  the program's own
     * @param \Closure(): Server         $server where it is
     */
    public function __construct(private readonly PhpRedis|Predis|null $given, private readonly \Closure $server)
    {
        $this->pid = getmypid();
    }

    public function isCluster(): bool
    {
        return false;
    }

    public function near(string $key, float $seconds): Connection
    {
        // A child of a fork shares its parent's connection, and would read the parent's replies.
        if ($this->given !== null && $this->pid === getmypid() && $this->given->isUsable()) {
            return $this->given;
        }
        return $this->take($key, $seconds);
    }

    public function take(string $key, float $seconds): Stream
    {
        $idle = $this->idle;
        $this->idle = null;
        return $idle?->isAlive() ? $idle : Stream::open(($this->server)(), $seconds);
    }

    public function giveBack(Connection $connection, string $key): void
    {
        if ($connection instanceof Stream) {
            $connection->forgetMessages();
            $this->idle = $connection;
        }
    }

    public function last(string $key, array $commands, float $seconds): array
    {
        return Stream::last(($this->server)(), $commands, $seconds);
    }

    public function elsewhere(ServerError $error): void
    {
        $this->idle = null;
        if ($error->word === 'MOVED' || $error->word === 'ASK') {
            throw new RefusedException($error->word, 'this server is a node of a cluster: give Locks a \RedisCluster, '
                . "or a Predis\Client with the option 'cluster' => 'redis' ({$error->text})");
        }
    }
}

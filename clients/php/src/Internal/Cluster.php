<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Server;

/** @internal The nodes of a cluster, each by connections of rlock's own. */
final class Cluster implements Link
{
    /** @var array<string, Stream> */
    private array $idle = [];
    /** @var list<array{int, int, Server}> from, to, where */
    private array $slots = [];

    /** @param \Closure(): list<Server> $seeds nodes by which the others are found */
    public function __construct(private readonly \Closure $seeds)
    {
    }

    public function isCluster(): bool
    {
        return true;
    }

    public function near(string $key, float $seconds): Connection
    {
        return $this->take($key, $seconds);
    }

    public function take(string $key, float $seconds): Stream
    {
        $node = $this->node($key, $seconds);
        $idle = $this->idle[$node->address()] ?? null;
        unset($this->idle[$node->address()]);
        if ($idle?->isAlive()) {
            return $idle;
        }
        try {
            return Stream::open($node, $seconds);
        } catch (Broken $e) {
            // Another node may have its slots by now.
            $this->slots = [];
            throw $e;
        }
    }

    public function giveBack(Connection $connection, string $key): void
    {
        if ($connection instanceof Stream) {
            $connection->forgetMessages();
            $this->idle[$connection->address()] = $connection;
        }
    }

    public function last(string $key, array $commands, float $seconds): array
    {
        return Stream::last($this->node($key, $seconds), $commands, $seconds);
    }

    public function elsewhere(ServerError $error): void
    {
        // ASK: the slot is on its way. All its keys will be there soon, and MOVED says so.
        $this->slots = [];
    }

    private function node(string $key, float $seconds): Server
    {
        if ($this->slots === []) {
            $this->slots = $this->read($seconds);
        }
        $slot = Names::slot($key);
        foreach ($this->slots as [$from, $to, $node]) {
            if ($slot >= $from && $slot <= $to) {
                return $node;
            }
        }
        $this->slots = [];
        throw new Broken("no node of the cluster has the slot $slot");
    }

    /** @return list<array{int, int, Server}> */
    private function read(float $seconds): array
    {
        $end = Clock::monotonic() + $seconds;
        $seeds = ($this->seeds)();
        $share = $seconds / count($seeds);
        $why = null;
        foreach ($seeds as $seed) {
            try {
                $stream = Stream::open($seed, min($share, max($end - Clock::monotonic(), 0.001)));
                $ranges = $stream->call(['CLUSTER', 'SLOTS'], $share);
            } catch (Broken $e) {
                $why = $e;
                continue;
            }
            if ($ranges === []) {
                continue;
            }
            return array_map(static fn (array $range): array => [
                // A node that does not know its own name is the one that was asked.
                $range[0], $range[1], $seed->at(($range[2][0] ?? '') ?: $seed->host, $range[2][1]),
            ], $ranges);
        }
        throw $why ?? new Broken('the cluster has no slots yet');
    }
}

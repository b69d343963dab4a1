<?php

declare(strict_types=1);

namespace Rlock;

use Rlock\Exception\NotAcquiredException;
use Rlock\Exception\RlockException;
use Rlock\Internal\Engine;
use Rlock\Internal\Grant;
use Rlock\Internal\Request;
use Rlock\Internal\Signals;

/** Locks on a Redis or Valkey server, or a cluster of them. Durations are seconds. */
final class Locks
{
    private readonly Engine $engine;

    /**
     * @param \Redis|\RedisCluster|\Predis\Client|Server|list<Server> $client the program's own client; a server
     *        to connect to; or some nodes of a cluster
     * @param float        $timeout to connect in, and for the answer to what does not wait
     * @param Backend|null $backend anything else is refused; null: what the server has
     * @param Server|\Closure(): Server|null $server where rlock's own connections go, where that cannot be read
     *        from the client: TLS options of phpredis, the password of a \RedisCluster
     * @param \Psr\Log\LoggerInterface|null $logger gets a line when there is no module
     */
    public function __construct(
        object|array $client,
        float $timeout = 5.0,
        ?Backend $backend = null,
        Server|\Closure|null $server = null,
        ?object $logger = null,
    ) {
        $this->engine = Engine::over($client, $timeout, $backend, $server, $logger);
    }

    /** By what the locks are made; null: no server has been asked yet. */
    public function backend(): ?Backend
    {
        return $this->engine->backends->known();
    }

    /**
     * The hold of a lock, or of several at once (all or none).
     *
     * @param string|list<string> $key
     * @param float $wait    how long it waits, at most; 0: not at all; INF: for ever
     * @param float $lease   when it ends, unless it is renewed
     * @param Mode|null $mode many readers, or one writer
     * @param int|null $limit a semaphore of so many permits
     * @param int   $permits how many of them
     *
     * @throws NotAcquiredException somebody else has it
     * @throws RlockException
     * @throws \InvalidArgumentException before anything is sent
     */
    public function acquire(
        string|array $key,
        float $wait = 0,
        float $lease = 10,
        ?Mode $mode = null,
        ?int $limit = null,
        int $permits = 1,
    ): Hold {
        // What all three take is said in their signatures alone.
        $hold = $this->tryAcquire(...func_get_args());
        if ($hold === null) {
            throw new NotAcquiredException((array) $key);
        }
        return $hold;
    }

    /** As acquire(); null: somebody else has it. */
    public function tryAcquire(
        string|array $key,
        float $wait = 0,
        float $lease = 10,
        ?Mode $mode = null,
        ?int $limit = null,
        int $permits = 1,
    ): ?Hold {
        return Signals::held(function () use ($key, $wait, $lease, $mode, $limit, $permits): ?Hold {
            $request = new Request(is_array($key) ? $key : [$key], $lease, $mode, $limit, $permits);
            $make = fn (Grant $grant): Hold => new Hold($this->engine, $request, $grant);
            return $this->engine->acquire($request, $wait, $make);
        });
    }

    /**
     * Runs $body with the hold, which is released after that, whatever happens. Returns what it returned.
     *
     * @param string|list<string> $key
     * @param callable(Hold): mixed $body
     *
     * @throws Exception\LostException when it has run: it was not alone to the end
     */
    public function with(
        string|array $key,
        callable $body,
        float $wait = 0,
        float $lease = 10,
        ?Mode $mode = null,
        ?int $limit = null,
        int $permits = 1,
    ): mixed {
        $hold = $this->acquire($key, ...array_slice(func_get_args(), 2));
        try {
            $result = $body($hold);
        } catch (\Throwable $e) {
            // Its own error is the one to be seen.
            try {
                $hold->release();
            } catch (RlockException) {
            }
            throw $e;
        }
        $hold->release();
        return $result;
    }
}

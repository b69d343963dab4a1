<?php

declare(strict_types=1);

namespace Rlock\Symfony;

use Rlock\Backend;
use Rlock\Exception\DeadlockException;
use Rlock\Exception\RefusedException;
use Rlock\Exception\RlockException;
use Rlock\Internal\Engine;
use Rlock\Internal\Grant;
use Rlock\Internal\Request;
use Rlock\Internal\Signals;
use Rlock\Mode;
use Rlock\Server;
use Symfony\Component\Lock\BlockingSharedLockStoreInterface;
use Symfony\Component\Lock\BlockingStoreInterface;
use Symfony\Component\Lock\Exception\InvalidTtlException;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockStorageException;
use Symfony\Component\Lock\Key;
use Symfony\Component\Lock\Store\ExpiringStoreTrait;

/**
 * A store for symfony/lock, whose waits are the server's. A key that is saved is a writer of the lock, one of
 * saveRead() a reader.
 */
final class RlockStore implements BlockingStoreInterface, BlockingSharedLockStoreInterface
{
    use ExpiringStoreTrait;

    private readonly Engine $engine;

    /**
     * @param \Redis|\RedisCluster|\Predis\Client|Server|list<Server> $client as for Locks, and what follows
     * @param float $initialTtl the lease in seconds, until it is put off
     */
    public function __construct(
        object|array $client,
        private readonly float $initialTtl = 300.0,
        float $timeout = 5.0,
        ?Backend $backend = null,
        Server|\Closure|null $server = null,
        ?object $logger = null,
    ) {
        if (!($initialTtl > 0)) {
            throw new InvalidTtlException("the initial TTL must be more than 0 s, got $initialTtl");
        }
        $this->engine = Engine::over($client, $timeout, $backend, $server, $logger);
    }

    public function save(Key $key): void
    {
        $this->acquire($key, Mode::Write, 0);
    }

    public function waitAndSave(Key $key): void
    {
        $this->acquire($key, Mode::Write, INF);
    }

    public function saveRead(Key $key): void
    {
        $this->acquire($key, Mode::Read, 0);
    }

    public function waitAndSaveRead(Key $key): void
    {
        $this->acquire($key, Mode::Read, INF);
    }

    public function putOffExpiration(Key $key, float $ttl): void
    {
        Signals::held(fn () => $this->putOff($key, $ttl));
    }

    private function putOff(Key $key, float $ttl): void
    {
        $held = $this->held($key) ?? throw new LockConflictedException();
        try {
            [, $sent] = $this->engine->ask($held->keys[0], $held->renew(self::milliseconds($ttl)));
        } catch (RefusedException $e) {
            $isGone = in_array($e->errorCode, ['NOTHELD', 'WRONGTYPE'], true);
            throw $isGone ? new LockConflictedException() : self::failed($e);
        } catch (RlockException $e) {
            throw self::failed($e);
        }
        $key->reduceLifetime($ttl - $sent->elapsed());
        $this->checkNotExpired($key);
    }

    public function delete(Key $key): void
    {
        Signals::held(fn () => $this->release($key));
    }

    private function release(Key $key): void
    {
        $held = $this->held($key);
        if ($held === null) {
            return;
        }
        try {
            $this->engine->ask($held->keys[0], $held->releaseAll());
        } catch (RlockException $e) {
            throw self::failed($e);
        }
        $key->removeState(self::class);
    }

    public function exists(Key $key): bool
    {
        return Signals::held(fn (): bool => $this->has($key));
    }

    private function has(Key $key): bool
    {
        $held = $this->held($key);
        if ($held === null) {
            return false;
        }
        try {
            $holders = $this->engine->holders($held->keys[0]);
        } catch (RlockException $e) {
            throw self::failed($e);
        }
        return in_array($held->owner, array_column($holders, 'owner'), true);
    }

    private function acquire(Key $key, Mode $mode, float $wait): void
    {
        $taken = null;
        Signals::allOrNothing(function () use ($key, $mode, $wait, &$taken): void {
            $taken = $this->take($key, $mode, $wait);
        }, function () use ($key, &$taken): void {
            if ($taken !== null) {
                $this->engine->leave($taken);
                $key->removeState(self::class);
            }
        });
    }

    private function take(Key $key, Mode $mode, float $wait): Request
    {
        $before = $this->held($key);
        $request = new Request([(string) $key], max($this->initialTtl, 0.001), $mode, owner: $before?->owner);
        try {
            $grant = $this->engine->acquire($request, $wait, fn (Grant $grant): Grant => $grant) ?? throw new LockConflictedException();
            if ($before !== null && $before->mode !== $mode) {
                // A reader that writes from now on, or the other way round.
                $this->engine->ask($before->keys[0], $before->releaseAll());
            }
        } catch (DeadlockException $e) {
            throw new LockConflictedException($e->getMessage(), 0, $e);
        } catch (RlockException $e) {
            throw self::failed($e);
        }
        $key->setState(self::class, ['owner' => $request->owner, 'mode' => $mode->value]);
        $key->reduceLifetime($this->initialTtl - $grant->since->elapsed());
        $this->checkNotExpired($key);
        return $request;
    }

    /** What this key has of the lock, as far as is known here. */
    private function held(Key $key): ?Request
    {
        if (!$key->hasState(self::class)) {
            return null;
        }
        ['owner' => $owner, 'mode' => $mode] = $key->getState(self::class);
        return new Request([(string) $key], max($this->initialTtl, 0.001), Mode::from($mode), owner: $owner);
    }

    private static function milliseconds(float $ttl): string
    {
        if (!($ttl > 0)) {
            throw new InvalidTtlException("the TTL must be more than 0 s, got $ttl");
        }
        return Request::milliseconds(max($ttl, 0.001), 'the TTL');
    }

    private static function failed(RlockException $e): LockStorageException
    {
        return new LockStorageException($e->getMessage(), 0, $e);
    }
}

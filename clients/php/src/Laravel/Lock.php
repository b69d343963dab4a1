<?php

declare(strict_types=1);

namespace Rlock\Laravel;

use Illuminate\Cache\Lock as CacheLock;
use Illuminate\Contracts\Cache\LockTimeoutException;
use Rlock\Exception\RefusedException;
use Rlock\Internal\Call;
use Rlock\Internal\Engine;
use Rlock\Internal\Request;
use Rlock\Internal\Signals;

/**
 * A lock of Laravel's cache. On the server each acquisition has a name of its own, the owner's and random digits:
 * an owner that has the lock does not get it again, and nothing late can end a later one.
 */
final class Lock extends CacheLock
{
    /** A lock for 0 seconds stays until it is released. */
    private const FOR_EVER = 100 * 365 * 86400;

    private ?Request $held = null;

    public function __construct(
        private readonly Engine $engine,
        private readonly ?string $connectionName,
        string $name,
        int|float|null $seconds,
        ?string $owner = null,
    ) {
        // Not between the arguments: see Signals.
        $seconds ??= 0;
        parent::__construct($name, $seconds, $owner);
    }

    public function acquire(): bool
    {
        return $this->take(0, false);
    }

    /**
     * Waits in the server's queue: betweenBlockedAttemptsSleepFor() has no meaning here.
     *
     * @param int|float     $seconds
     * @param callable|null $callback
     */
    public function block($seconds, $callback = null): mixed
    {
        if (!is_callable($callback)) {
            return $this->take(max((float) $seconds, 0), true);
        }
        $this->take(max((float) $seconds, 0), true);
        try {
            return $callback();
        } finally {
            $this->release();
        }
    }

    public function release(): bool
    {
        return Signals::held(function (): bool {
            $held = $this->found();
            $this->held = null;
            return $held !== null && $this->isTrue($held->release(), $held, $held->releaseAll());
        });
    }

    /** The lease begins anew. */
    public function refresh($seconds = null): bool
    {
        return Signals::held(function () use ($seconds): bool {
            $held = $this->found();
            $lease = Request::milliseconds($this->lease($seconds ?? $this->seconds), 'the lease');
            return $held !== null && $this->isTrue($held->renew($lease), $held);
        });
    }

    public function forceRelease(): void
    {
        $this->held = null;
        $this->engine->force($this->name);
    }

    public function getConnectionName(): ?string
    {
        return $this->connectionName;
    }

    protected function getCurrentOwner(): ?string
    {
        return Signals::held(function (): ?string {
            $owner = $this->engine->holders($this->name)[0]['owner'] ?? null;
            return $owner === null ? null : self::plain($owner);
        });
    }

    /** @param bool $isNeeded not to get it is an error */
    private function take(float $wait, bool $isNeeded): bool
    {
        $before = $this->held;
        return Signals::allOrNothing(function () use ($wait, $isNeeded): bool {
            $request = $this->request($this->owner . ':' . bin2hex(random_bytes(8)));
            $taken = $this->engine->acquire($request, $wait, fn (): Request => $this->held = $request);
            return $taken !== null || $isNeeded && throw new LockTimeoutException();
        }, fn () => $this->giveBack($before));
    }

    private function giveBack(?Request $before): void
    {
        [$held, $this->held] = [$this->held, $before];
        if ($held !== null && $held !== $before) {
            $this->engine->leave($held);
        }
    }

    /** What the owner has of the lock, by this object or another one. */
    private function found(): ?Request
    {
        if ($this->held !== null) {
            return $this->held;
        }
        foreach ($this->engine->holders($this->name) as $holder) {
            if (self::plain($holder['owner']) === (string) $this->owner) {
                return $this->request($holder['owner']);
            }
        }
        return null;
    }

    private function request(string $owner): Request
    {
        return new Request([$this->name], $this->lease($this->seconds), owner: $owner);
    }

    private function isTrue(Call $call, Request $held, ?Call $again = null): bool
    {
        try {
            $this->engine->ask($held->keys[0], $call, $again);
        } catch (RefusedException $e) {
            return in_array($e->errorCode, ['NOTHELD', 'WRONGTYPE'], true) ? false : throw $e;
        }
        return true;
    }

    private function lease(int|float $seconds): float
    {
        return $seconds > 0 ? (float) $seconds : self::FOR_EVER;
    }

    /** An owner of the server without its random digits; a holder by another client stays what it is. */
    private static function plain(string $owner): string
    {
        return preg_replace('/:[0-9a-f]{16}$/D', '', $owner);
    }
}

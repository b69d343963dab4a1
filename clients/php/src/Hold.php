<?php

declare(strict_types=1);

namespace Rlock;

use Rlock\Exception\LostException;
use Rlock\Exception\RefusedException;
use Rlock\Exception\RlockException;
use Rlock\Internal\AtExit;
use Rlock\Internal\Clock;
use Rlock\Internal\Engine;
use Rlock\Internal\Grant;
use Rlock\Internal\Remainder;
use Rlock\Internal\Request;
use Rlock\Internal\Signals;

/**
 * A lock that is held, until its lease ends or it is released. A hold that nothing refers to any more is
 * released: keep it for as long as you want the lock.
 */
final class Hold
{
    /** The lock; of several the first. */
    public readonly string $key;
    /** @var list<string> */
    public readonly array $keys;
    public readonly string $owner;
    /** The fencing token: storage refuses a smaller one than it has seen. */
    public readonly int $token;

    private readonly int $pid;
    private Clock $since;
    private float $lease;
    private ?string $lost = null;
    /** Whether the program has released it. */
    private bool $isReleased = false;
    private readonly Remainder $remainder;

    /** @internal */
    public function __construct(
        private readonly Engine $engine,
        private readonly Request $request,
        Grant $grant,
    ) {
        $this->key = $request->keys[0];
        $this->keys = $request->keys;
        $this->owner = $request->owner;
        $this->token = $grant->token;
        $this->since = $grant->since;
        $this->lease = (int) $request->lease / 1000;
        $this->pid = getmypid();
        $this->remainder = new Remainder($engine, $request);
        AtExit::add($this);
    }

    /**
     * Whether it is known to be lost: nobody says so in between, so it is the clock that shows it, or the server's
     * answer to renew().
     */
    public function isLost(): bool
    {
        return $this->lostReason() !== null;
    }

    /** lease, deleted, overwritten or fork; null: it is not known to be lost. */
    public function lostReason(): ?string
    {
        if ($this->pid !== getmypid()) {
            return 'fork';
        }
        if (!$this->remainder->isOver && $this->lost === null && $this->remaining() <= 0) {
            $this->lost = 'lease';
        }
        return $this->lost;
    }

    /** How many seconds are left of its lease. */
    public function remaining(): float
    {
        return $this->remainder->isOver ? 0.0 : max($this->lease - $this->since->elapsed(), 0.0);
    }

    /**
     * The lease begins anew.
     *
     * @param float|null $lease how long it is from now on; null: as long as before
     *
     * @throws LostException
     * @throws RlockException it is not known whether it was renewed; its deadline is what it was
     */
    public function renew(?float $lease = null): void
    {
        Signals::held(fn () => $this->prolong($lease));
    }

    private function prolong(?float $lease): void
    {
        $ms = Request::milliseconds($lease ?? $this->lease, 'the lease');
        $this->isReleased && throw new LostException($this->key, 'released');
        $this->checkLost();
        try {
            [, $sent] = $this->engine->ask($this->key, $this->request->renew($ms));
        } catch (RlockException $e) {
            throw $this->lostBy($e) ?? $e;
        }
        $this->since = $sent;
        $this->lease = (int) $ms / 1000;
        $this->checkLost();
    }

    /**
     * A second release does nothing.
     *
     * @throws LostException it was lost before: the program was not alone for all that time
     * @throws RlockException
     */
    public function release(): void
    {
        Signals::held($this->end(...));
    }

    private function end(): void
    {
        if ($this->isReleased) {
            return;
        }
        $this->isReleased = true;
        if ($this->lostReason() !== null) {
            $this->remainder->leave();
            $this->checkLost();
        }
        try {
            // After a lost reply nobody knows whether it is held still.
            [$left, , $isExact] = $this->engine->ask($this->key, $this->request->release(), $this->request->releaseAll());
        } catch (RlockException $e) {
            $lost = $this->lostBy($e);
            // What is refused may be tried again; without a connection its lease ends it.
            $this->isReleased = !$e instanceof RefusedException || $lost !== null;
            $this->remainder->isOver = $this->isReleased;
            throw $lost ?? $e;
        }
        $this->remainder->isOver = true;
        if ($isExact && $this->request->isMany() && $left < count($this->keys)) {
            $this->lost = 'deleted';
            $this->checkLost();
        }
    }

    /** Releases what is held still. */
    public function __destruct()
    {
        $this->remainder->leave();
    }

    public function __clone()
    {
        throw new \LogicException('a hold cannot be copied: there is one');
    }

    public function __serialize(): array
    {
        throw new \LogicException('a hold cannot be kept beyond its process');
    }

    private function checkLost(): void
    {
        if (($reason = $this->lostReason()) !== null) {
            throw new LostException($this->key, $reason);
        }
    }

    /** If the server's answer shows that it is lost. */
    private function lostBy(RlockException $e): ?LostException
    {
        $word = $e instanceof RefusedException ? $e->errorCode : null;
        if ($word !== 'NOTHELD' && $word !== 'WRONGTYPE') {
            return null;
        }
        $this->lost = $word === 'WRONGTYPE' ? 'overwritten' : ($this->remaining() > 0 ? 'deleted' : 'lease');
        if ($this->request->isMany()) {
            // The loss of one is the loss of all.
            $this->remainder->leave();
        }
        $this->remainder->isOver = true;
        return new LostException($this->key, $this->lost);
    }
}

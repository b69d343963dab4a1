<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Exception\LostException;
use Rlock\Exception\RefusedException;

/** @internal One acquisition that is under way. Whoever begins it holds the handlers of signals back (Signals). */
final class Acquisition
{
    /** A connection that was silent for so long is replaced; the server keeps the place in its queue. */
    private const SILENCE = 60.0;
    /** How long the server's word may come after the end of the wait. */
    private const GRACE = 1.0;

    private readonly float $began;
    private readonly float $end;
    private readonly Turn $turn;
    private readonly int $process;
    /** Whether the server may have something of it that nobody else releases. */
    private bool $isOpen = false;

    public function __construct(
        private readonly Engine $engine,
        private readonly Request $request,
        private readonly float $wait,
    ) {
        $this->began = Clock::monotonic();
        $this->end = $this->began + $wait;
        $this->turn = new Turn($engine, $request, $this->began);
        $this->process = getmypid();
        AtExit::add($this);
    }

    /** `exit` in a signal's handler ends it without an exception. */
    public function __destruct()
    {
        if ($this->isOpen && getmypid() === $this->process) {
            $this->settle();
        }
    }

    /**
     * @template T
     *
     * @param \Closure(Grant): T $make makes of it what the program gets: that sees to its end
     *
     * @return T|null
     */
    public function run(\Closure $make): mixed
    {
        $wereOpen = Signals::open(Signals::areHeld());
        try {
            $grant = $this->first();
            if ($grant === null && $this->wait > 0) {
                $grant = $this->wait();
            }
            return $grant === null ? null : $make($grant);
        } catch (\Throwable $e) {
            // Whatever it was, also an exception of a signal's handler: nothing may stay. But for a newer request of the
            // same owner, which has the place now.
            $isSuperseded = $e instanceof RefusedException && $e->errorCode === 'SUPERSEDED';
            if ($this->isOpen && !$isSuperseded) {
                $this->settle();
            }
            throw $e;
        } finally {
            $this->isOpen = false;
            Signals::open($wereOpen);
        }
    }

    /** At once, if it is free. */
    private function first(): ?Grant
    {
        $this->isOpen = true;
        $call = $this->request->acquire(place: $this->wait > 0 ? $this->turn->name : null);
        [$reply, $sent] = $this->engine->ask($this->request->keys[0], $call, end: $this->lastMoment());
        if (is_int($reply)) {
            return new Grant($reply, $sent);
        }
        $this->turn->refused($reply);
        return null;
    }

    /** A server that cannot be reached is tried for as long as the wait, and at least for the time-out. */
    private function lastMoment(): float
    {
        return max($this->end, $this->began + $this->engine->timeout);
    }

    private function wait(): ?Grant
    {
        $key = $this->request->keys[0];
        $stream = null;
        $pause = 0.0;
        $askedBefore = false; // on a connection that is gone
        while (true) {
            try {
                if ($stream === null) {
                    $stream = $this->engine->link->take($key, $this->engine->timeout);
                    $opened = Clock::monotonic();
                    $this->turn->begin();
                }
                $left = $this->end - Clock::monotonic();
                $outcome = $this->engine->backends->isModule()
                    ? $this->block($stream, $left)
                    : $this->turn->attempt($stream, $left);
                if ($outcome !== null) {
                    $this->turn->finish($stream);
                    $this->engine->link->giveBack($stream, $key);
                    return $outcome ?: null;
                }
                continue;
            } catch (Broken $e) {
                $askedBefore = $askedBefore || $stream !== null;
            } catch (ServerError $e) {
                if ($e->word === 'SUPERSEDED' && $askedBefore) {
                    $askedBefore = false; // by what it said there, and that came late
                    continue;
                }
                $this->engine->mend($e);
            }
            if ($stream !== null && Clock::monotonic() - $opened > 1) {
                $pause = 0.0;
            }
            $stream = null;
            if ($this->end <= Clock::monotonic() && $this->settle()) {
                return null;
            }
            $pause = $this->engine->pause($e, $pause, $this->lastMoment());
        }
    }

    /** Waits in the module's queue. False: it was not to be had; null: on, without the module. */
    private function block(Stream $stream, float $left): Grant|false|null
    {
        $block = match (true) {
            $left <= 0 => null,
            $left === INF => '0',
            default => Request::milliseconds(max($left, 0.001), 'the wait'),
        };
        $sent = Clock::now();
        $answerWithin = min(max($left, 0) + self::GRACE, self::SILENCE);
        $reply = $this->engine->backends->call($stream, $this->request->acquire($block), $answerWithin);
        if (is_int($reply)) {
            return new Grant($reply, $this->since($stream, $sent));
        }
        return $this->engine->backends->isModule() ? false : null;
    }

    /** After a wait nobody knows here when the lease began: it begins anew. */
    private function since(Stream $stream, Clock $sent): Clock
    {
        if ($sent->elapsed() < (int) $this->request->lease / 10000) {
            return $sent;
        }
        $now = Clock::now();
        try {
            $this->engine->backends->call($stream, $this->request->renew($this->request->lease), $this->engine->timeout);
        } catch (ServerError $e) {
            throw $e->word === 'NOTHELD' ? new LostException($this->request->keys[0], 'deleted') : $e;
        }
        return $now;
    }

    /** Leaves nothing on the server. Whether it has answered to that. */
    private function settle(): bool
    {
        $wereOpen = Signals::open(false);
        $calls = [$this->request->cancel($this->turn->place), $this->request->releaseAll()];
        try {
            $commands = array_map($this->engine->backends->words(...), $calls);
            $replies = $this->engine->link->last($this->request->keys[0], $commands, $this->engine->timeout);
        } catch (Broken | ServerError) {
            return false;
        } finally {
            Signals::open($wereOpen);
        }
        foreach ($replies as $reply) {
            if ($reply instanceof ServerError && $reply->isLater()) {
                return false;
            }
        }
        return true;
    }
}

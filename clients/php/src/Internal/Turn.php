<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Exception\RefusedException;

/**
 * @internal The wait for a turn where there is no module: tries, when a message says that it may be worth it. Who
 * has waited for a while takes a place in the lock's queue, and from then on only the head of that gets it.
 */
final class Turn
{
    private const QUEUE_AFTER = 0.1;
    private const PLACE_MS = 2000;
    /** A place is kept by trying. */
    private const KEEP = 0.5;
    /** Messages can be lost. */
    private const LOST_MESSAGE = 0.7;
    /** No message says that some permits came back. */
    private const PERMITS = 0.075;
    /** Without RESP3 there are no messages. */
    private const DEAF = 0.05;

    private const NO_SHARDS = 'a cluster needs Redis 7.0 or newer, or Valkey: this server has no sharded pub/sub';

    /** The name of the place in the queue; null: it has none. */
    public ?string $place = null;
    /** What its place is called, if it gets one. */
    public readonly string $name;
    /** Others have places, so it takes one at once. */
    private bool $isQueue = false;
    private bool $hearsPlace = false;
    private bool $hearsLock = false;

    public function __construct(
        private readonly Engine $engine,
        private readonly Request $request,
        private readonly float $began,
    ) {
        $this->name = bin2hex(random_bytes(16));
    }

    /** On a new connection. */
    public function begin(): void
    {
        $this->hearsPlace = $this->hearsLock = false;
    }

    /** Tries, and if that is refused pauses. False: the time is over; null: to be tried again. */
    public function attempt(Stream $stream, float $left): Grant|false|null
    {
        $this->listen($stream);
        $waited = Clock::monotonic() - $this->began;
        $joins = $this->isQueue || $this->place !== null || $waited >= self::QUEUE_AFTER;
        $ms = $joins && $left > 0 && !$this->request->isMany() ? self::PLACE_MS : 0;
        $sent = Clock::now();
        // From before the answer: a place may be there though its reply is lost.
        $this->place = $ms > 0 ? $this->name : $this->place;
        $call = $this->request->acquire(place: $this->name, placeMs: $ms);
        $reply = $this->engine->backends->call($stream, $call, $this->engine->timeout);
        if (is_int($reply)) {
            $this->place = null;
            return new Grant($reply, $sent);
        }
        if ($this->engine->backends->isModule()) {
            return null;
        }
        $this->refused($reply);
        [$open, $ahead] = is_array($reply) ? $reply : [-1, -1];
        // The end of the lease is for the head of the queue.
        $open = $ahead > 0 ? -1 : $open;
        $this->place = $ahead >= 0 ? $this->name : null;
        if ($left <= 0) {
            return false;
        }
        if ($this->place !== null) {
            $this->hearOnlyPlace($stream);
        } elseif ($this->isQueue && $ms === 0) {
            return null;
        } elseif (!$this->hearsLock && !$this->isQueue && $stream->isResp3) {
            return null;
        }
        $this->pause($stream, $this->length($stream, $waited, $open), $left);
        return null;
    }

    /** What the reply to a try shows that was refused: below -1 how many others have places. */
    public function refused(mixed $reply): void
    {
        $this->isQueue = is_array($reply) && $reply[1] < -1 && !$this->request->isMany();
    }

    /** It is over: nothing is left of it. */
    public function finish(Stream $stream): void
    {
        if ($this->hearsLock || $this->hearsPlace) {
            $stream->send([$this->command('UNSUBSCRIBE')]);
        }
        $this->hearsLock = $this->hearsPlace = false;
    }

    private function listen(Stream $stream): void
    {
        $channels = [];
        if (!$this->hearsLock && !$this->isQueue && $this->place === null) {
            $channels = $this->request->channels();
        }
        if (!$this->hearsPlace && !$this->request->isMany()) {
            $channels[] = $this->request->placeChannel($this->name);
        }
        if ($channels === [] || !$stream->isResp3) {
            return;
        }
        try {
            $stream->subscribe($this->command('SUBSCRIBE'), $channels, $this->engine->timeout);
        } catch (ServerError $e) {
            throw $this->engine->link->isCluster() && $e->isUnknownCommand() ? new RefusedException('ERR', self::NO_SHARDS) : $e;
        }
        $this->hearsPlace = true;
        $this->hearsLock = $this->hearsLock || $this->place === null;
    }

    /** So a release wakes the head alone. */
    private function hearOnlyPlace(Stream $stream): void
    {
        if ($this->hearsLock) {
            $stream->send([$this->command('UNSUBSCRIBE'), ...$this->request->channels()]);
            $this->hearsLock = false;
        }
    }

    private function command(string $name): string
    {
        return ($this->engine->link->isCluster() ? 'S' : '') . $name;
    }

    private function length(Stream $stream, float $waited, int $open): float
    {
        $pause = match (true) {
            !$stream->isResp3 => self::DEAF,
            $this->place !== null => self::KEEP,
            $this->request->limit !== null => self::PERMITS,
            default => self::LOST_MESSAGE,
        };
        $pause *= random_int(80, 120) / 100;
        if ($waited < self::QUEUE_AFTER && !$this->request->isMany()) {
            $pause = min($pause, self::QUEUE_AFTER - $waited);
        }
        return $open >= 0 ? min($pause, ($open + 1) / 1000) : $pause;
    }

    private function pause(Stream $stream, float $pause, float $left): void
    {
        $pause = max(min($pause, $left), 0.001);
        if ($stream->isResp3) {
            $stream->message($pause);
        } else {
            Signals::point();
            usleep((int) ($pause * 1e6));
            Signals::point();
        }
    }
}

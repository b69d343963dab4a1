<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Backend;
use Rlock\Exception\ConnectionException;
use Rlock\Exception\RefusedException;
use Rlock\Exception\RlockException;
use Rlock\Server;

/** @internal Sends what is asked for, and sees to it that it is answered. */
final class Engine
{
    private const FIRST_PAUSE = 0.05;
    private const LONGEST_PAUSE = 1.0;
    private const NOT_YET = 0.5;

    /** @param float $timeout to connect in, and for the reply to what does not wait */
    public function __construct(
        public readonly Link $link,
        public readonly Backends $backends,
        public readonly float $timeout,
    ) {
    }

    /** @param object|array $client the program's own: see Locks */
    public static function over(
        object|array $client,
        float $timeout,
        ?Backend $backend = null,
        Server|\Closure|null $server = null,
        ?object $logger = null,
    ): self {
        if (!($timeout > 0 && $timeout <= 3600)) {
            throw new \InvalidArgumentException("the timeout must be more than 0 s and at most 3600 s, got $timeout s");
        }
        return Signals::held(static function () use ($client, $timeout, $backend, $server, $logger): self {
            $link = Clients::link($client, $server);
            return new self($link, new Backends($backend, $link->isCluster(), $logger), $timeout);
        });
    }

    /**
     * Null: the server said that somebody else has it.
     *
     * @template T
     *
     * @param float $wait in seconds; INF: for ever
     * @param \Closure(Grant): T $make
     *
     * @return T|null
     */
    public function acquire(Request $request, float $wait, \Closure $make): mixed
    {
        if (!($wait >= 0)) {
            throw new \InvalidArgumentException("the wait must be a number of seconds from 0 on, got $wait");
        }
        $acquisition = new Acquisition($this, $request, $wait);
        return $acquisition->run($make);
    }

    /** Ends whatever there may be of it, and shows nothing. */
    public function leave(Request $request): void
    {
        try {
            $this->ask($request->keys[0], $request->releaseAll());
        } catch (RlockException) {
            // Its lease ends it.
        }
    }

    /**
     * The reply to what does not wait and may be sent twice, when that was sent, and whether it was for the first time.
     *
     * @param Call|null $again what is sent after a first attempt whose reply was lost; null: the same
     *
     * @return array{mixed, Clock, bool}
     */
    public function ask(string $key, Call $call, ?Call $again = null, ?float $end = null): array
    {
        return Signals::held(fn (): array => $this->asked($key, $call, $again, $end));
    }

    /** The same, while no handler of a signal runs. */
    private function asked(string $key, Call $call, ?Call $again, ?float $end): array
    {
        $end ??= Clock::monotonic() + $this->timeout;
        $pause = 0.0;
        $isLost = false;
        for ($isFirst = true;; $isFirst = false) {
            $left = min(max($end - Clock::monotonic(), 0.001), $this->timeout);
            // A reply may be lost without a word: then there is time for another attempt.
            $left = $isFirst ? $left / 2 : $left;
            try {
                $sent = Clock::now();
                $connection = $isFirst ? $this->link->near($key, $left) : $this->link->take($key, $left);
                try {
                    $reply = $this->backends->call($connection, $isLost ? $again ?? $call : $call, $left);
                } catch (ServerError $e) {
                    $this->link->giveBack($connection, $key);
                    throw $e;
                }
                $this->link->giveBack($connection, $key);
                return [$reply, $sent, !$isLost];
            } catch (Broken $e) {
                $isLost = true;
            } catch (ServerError $e) {
                $this->mend($e);
            }
            $pause = $this->pause($e, $pause, $end);
        }
    }

    /**
     * Who has the lock: each with its owner and mode. Empty: it is free, or no lock.
     *
     * @return list<array<string, mixed>>
     */
    public function holders(string $key): array
    {
        try {
            [$info] = $this->ask($key, new Call('info', false, [$key], ['COUNT', '1000000'], []));
        } catch (RefusedException $e) {
            return $e->errorCode === 'WRONGTYPE' ? [] : throw $e;
        }
        return array_map(self::fields(...), self::fields($info)['holders']);
    }

    /** Frees a lock, whoever has it. */
    public function force(string $key): void
    {
        $this->ask($key, new Call('force', false, [$key], [], ['queue', 'places']));
    }

    /** After an error that is for the program, throws that. */
    public function mend(ServerError $e): void
    {
        if (!$e->isLater()) {
            throw $e->forProgram();
        }
        $this->link->elsewhere($e);
    }

    /** Pauses before the next attempt, longer each time; the first comes at once. Throws when the time is over. */
    public function pause(Broken|ServerError $why, float $pause, float $end): float
    {
        if ($why instanceof ServerError && $why->word === 'NOTYET') {
            $pause = self::NOT_YET;
        }
        $left = $end - Clock::monotonic();
        if ($left <= $pause) {
            throw new ConnectionException($why->getMessage(), 0, $why);
        }
        self::sleep($pause);
        return min(max($pause * 2, self::FIRST_PAUSE), self::LONGEST_PAUSE);
    }

    /** Names and values that come by turns. */
    private static function fields(array $list): array
    {
        $fields = [];
        foreach (array_chunk($list, 2) as [$name, $value]) {
            $fields[$name] = $value;
        }
        return $fields;
    }

    private static function sleep(float $seconds): void
    {
        if ($seconds > 0) {
            Signals::point();
            usleep((int) ($seconds * 1e6));
            Signals::point();
        }
    }
}

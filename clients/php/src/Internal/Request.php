<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Mode;

/** @internal What is asked for, by whom, and the commands that say so. */
final class Request
{
    /** A server may be set to close a connection that sends 1 MB. */
    private const MOST_KEYS = 512 * 1024;
    private const MOST_MS = 9007199254740991;

    public readonly string $owner;
    /** The lease, in ms. */
    public readonly string $lease;
    /** @var list<string> */
    private readonly array $words;

    /** @param list<string> $keys */
    public function __construct(
        public readonly array $keys,
        float $lease,
        public readonly ?Mode $mode = null,
        public readonly ?int $limit = null,
        public readonly int $permits = 1,
        ?string $owner = null,
    ) {
        self::checkKeys($keys);
        if (count($keys) > 1 && ($mode !== null || $limit !== null)) {
            throw new \InvalidArgumentException('several keys are plain locks: they have neither a mode nor a limit');
        }
        if ($mode !== null && $limit !== null) {
            throw new \InvalidArgumentException('a lock has a mode or a limit, not both');
        }
        if ($limit === null ? $permits !== 1 : $limit < 1 || $permits < 1 || $permits > $limit) {
            throw new \InvalidArgumentException(
                "permits must be from 1 to the limit, got $permits of " . ($limit ?? 'no limit')
            );
        }
        $this->lease = self::milliseconds($lease, 'the lease');
        $this->owner = $owner ?? self::freshOwner();
        $this->words = $limit !== null ? ['LIMIT', (string) $limit, 'PERMITS', (string) $permits]
            : ($mode !== null ? [$mode->value] : []);
    }

    /** Such as web1:4711:8f14e45fceea167a5a36dedd4bea2543. */
    public static function freshOwner(): string
    {
        return substr(gethostname() ?: 'php', 0, 200) . ':' . getmypid() . ':' . bin2hex(random_bytes(16));
    }

    /** A duration in ms, rounded up. */
    public static function milliseconds(float $seconds, string $what): string
    {
        if (!($seconds >= 0.001 && $seconds * 1000 <= self::MOST_MS)) {
            throw new \InvalidArgumentException("$what must be at least 0.001 s, and no more than 285,000 years; got $seconds s");
        }
        return (string) (int) ceil(round($seconds * 1000, 3));
    }

    public function isMany(): bool
    {
        return count($this->keys) > 1;
    }

    /** Tries, or with the module waits for so many ms; without it the place in the queue has this name. */
    public function acquire(?string $block = null, ?string $place = null, int $placeMs = 0): Call
    {
        return $this->call('acquire', [$this->owner, $this->lease, ...$this->words, 'ONCE'], ['token', 'queue', 'places'])
            ->module($block === null ? [] : ['BLOCK', $block])
            ->plain($place === null ? [] : ['PLACE', $place, (string) $placeMs]);
    }

    public function renew(string $lease): Call
    {
        return $this->call('renew', [$this->owner, $lease, ...$this->of()], []);
    }

    /** Ends the hold; NOTHELD shows that it was lost. */
    public function release(): Call
    {
        $of = $this->limit === null ? $this->of() : ['PERMITS', (string) $this->permits];
        return $this->call('release', [$this->owner, ...$of], ['queue', 'places']);
    }

    /** Ends whatever there may be; it can be sent twice. */
    public function releaseAll(): Call
    {
        $all = $this->isMany() ? [] : [...$this->of(), 'ALL', 'IFHELD'];
        return $this->call('release', [$this->owner, ...$all], ['queue', 'places']);
    }

    /** The wait is given up, and without the module its place. Of several keys: the first's wait is that of all. */
    public function cancel(?string $place = null): Call
    {
        return (new Call('cancel', false, [$this->keys[0]], [$this->owner, ...$this->of()], ['queue', 'places']))
            ->plain($place === null ? [] : ['PLACE', $place]);
    }

    /**
     * Where it is said that the lock is free.
     *
     * @return list<string>
     */
    public function channels(): array
    {
        $prefix = $this->mode !== null ? 'redisson_rwlock' : 'redisson_lock__channel';
        return array_map(static fn (string $key): string => Names::prefixed($prefix, $key), $this->keys);
    }

    /** Where it is said that this place is the head of the queue. */
    public function placeChannel(string $place): string
    {
        return Names::prefixed('redisson_lock__channel', $this->keys[0]) . ":$place";
    }

    /** @return list<string> */
    private function of(): array
    {
        return $this->limit !== null ? ['PERMITS'] : ($this->mode !== null ? [$this->mode->value] : []);
    }

    private function call(string $name, array $words, array $declared): Call
    {
        return new Call($name, $this->isMany(), $this->keys, $words, $declared);
    }

    private static function checkKeys(array $keys): void
    {
        if ($keys === [] || !array_is_list($keys)) {
            throw new \InvalidArgumentException('the keys must be a list of at least one');
        }
        $bytes = 0;
        foreach ($keys as $key) {
            if (!is_string($key) || $key === '') {
                throw new \InvalidArgumentException('a key must be a text that is not empty');
            }
            $bytes += strlen($key);
        }
        if ($bytes > self::MOST_KEYS) {
            throw new \InvalidArgumentException("the keys of one request may have 512 KB, got $bytes bytes");
        }
        if (count(array_unique($keys)) < count($keys)) {
            throw new \InvalidArgumentException('a key is given twice');
        }
    }
}

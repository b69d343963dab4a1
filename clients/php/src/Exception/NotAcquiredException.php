<?php

declare(strict_types=1);

namespace Rlock\Exception;

/** Somebody else has the lock, and had it for the whole wait: the server said so. */
final class NotAcquiredException extends RlockException
{
    /** The lock; of several the first. */
    public readonly string $key;

    /** @param list<string> $keys */
    public function __construct(public readonly array $keys)
    {
        $this->key = $keys[0];
        parent::__construct("somebody else has '" . implode("', '", $keys) . "'");
    }
}

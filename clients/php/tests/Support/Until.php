<?php

declare(strict_types=1);

namespace Rlock\Tests\Support;

final class Until
{
    /** Waits for a condition, for as long as it may take on a slow machine. */
    public static function true(callable $condition, string $what, float $seconds = 30): void
    {
        $end = microtime(true) + $seconds;
        while (!$condition()) {
            if (microtime(true) > $end) {
                throw new \RuntimeException("not within $seconds s: $what");
            }
            usleep(2000);
        }
    }
}

<?php

declare(strict_types=1);

namespace Rlock\Internal;

/**
 * @internal A moment, by two clocks: PHP's monotonic one stands still while the machine is suspended,
 * /proc/uptime goes on, in steps of 10 ms.
 */
final class Clock
{
    private const STEP = 0.01;

    private function __construct(private readonly float $monotonic, private readonly ?float $uptime)
    {
    }

    public static function now(): self
    {
        $text = @file_get_contents('/proc/uptime', length: 32);
        $uptime = $text === false ? null : (float) $text;
        return new self(self::monotonic(), $uptime);
    }

    /** Seconds, for what need not count a suspend. */
    public static function monotonic(): float
    {
        return hrtime(true) / 1e9;
    }

    /** How long ago it was, in seconds; rather too long than too short. */
    public function elapsed(): float
    {
        $now = self::now();
        $elapsed = $now->monotonic - $this->monotonic;
        if ($this->uptime === null || $now->uptime === null) {
            return $elapsed;
        }
        return max($elapsed, $now->uptime - $this->uptime - self::STEP);
    }
}

<?php

declare(strict_types=1);

namespace Rlock\Internal;

/** @internal Names of what belongs to a lock. They are Redisson's. */
final class Names
{
    private const DECLARED = ['token' => 'redisson_lock_token', 'queue' => 'rlock1_queue', 'places' => 'rlock1_places'];

    public static function prefixed(string $prefix, string $key): string
    {
        return str_contains($key, '{') ? "$prefix:$key" : "$prefix:{{$key}}";
    }

    /**
     * What a script is going to touch beside the lock. Of a name that has a brace and no hash tag it would lie
     * in another slot.
     *
     * @param list<string> $which
     *
     * @return list<string>
     */
    public static function declared(string $key, array $which): array
    {
        if (strpbrk($key, '{}') !== false && !preg_match('/^[^{]*\{[^}]+\}/s', $key)) {
            return [];
        }
        return array_map(static fn (string $one): string => self::prefixed(self::DECLARED[$one], $key), $which);
    }

    /** The slot of a cluster in which a key lies. */
    public static function slot(string $key): int
    {
        $part = preg_match('/^[^{]*\{([^}]+)\}/s', $key, $tag) ? $tag[1] : $key;
        $crc = 0;
        for ($at = 0, $end = strlen($part); $at < $end; ++$at) {
            $crc ^= ord($part[$at]) << 8;
            for ($bit = 0; $bit < 8; ++$bit) {
                $crc = $crc & 0x8000 ? ($crc << 1) ^ 0x1021 : $crc << 1;
            }
        }
        return $crc & 0x3FFF;
    }
}

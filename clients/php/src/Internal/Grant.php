<?php

declare(strict_types=1);

namespace Rlock\Internal;

/** @internal */
final class Grant
{
    /** @param Clock $since from when on its lease counts, at the latest */
    public function __construct(public readonly int $token, public readonly Clock $since)
    {
    }
}

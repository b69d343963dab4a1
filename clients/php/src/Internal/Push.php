<?php

declare(strict_types=1);

namespace Rlock\Internal;

/** @internal What a server sends that is no reply. */
final class Push
{
    public function __construct(public readonly array $fields)
    {
    }
}

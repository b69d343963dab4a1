<?php

declare(strict_types=1);

namespace Rlock;

/** @internal */
final class Version
{
    public const TEXT = '0.9.0';
}

<?php

declare(strict_types=1);

namespace Rlock;

/** Of a lock that many may read, or one may write. */
enum Mode: string
{
    case Read = 'READ';
    case Write = 'WRITE';
}

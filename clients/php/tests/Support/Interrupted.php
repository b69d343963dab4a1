<?php

declare(strict_types=1);

namespace Rlock\Tests\Support;

/** What the handler of a signal throws. */
final class Interrupted extends \RuntimeException
{
}

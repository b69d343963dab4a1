<?php

declare(strict_types=1);

namespace Rlock\Internal;

/** @internal The connection has ended, or was silent for too long; it is of no use any more. */
final class Broken extends \RuntimeException
{
}

<?php

declare(strict_types=1);

namespace Rlock\Exception;

/** All that rlock throws, but for \InvalidArgumentException. */
abstract class RlockException extends \RuntimeException
{
}

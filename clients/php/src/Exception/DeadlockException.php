<?php

declare(strict_types=1);

namespace Rlock\Exception;

/** The wait would never have ended; the text has the cycle. */
final class DeadlockException extends RlockException
{
}

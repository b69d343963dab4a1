<?php

declare(strict_types=1);

namespace Rlock\Exception;

/** No connection, or no answer, within the time. */
final class ConnectionException extends RlockException
{
}

<?php

declare(strict_types=1);

namespace Rlock\Exception;

/** Another error of the server. */
final class RefusedException extends RlockException
{
    /** @param string $errorCode its first word, such as OOM, WRONGTYPE or NOPERM */
    public function __construct(public readonly string $errorCode, string $text)
    {
        parent::__construct($text);
    }
}

<?php

declare(strict_types=1);

namespace Rlock\Exception;

/** The hold was lost: somebody else may have had the lock meanwhile. */
final class LostException extends RlockException
{
    /**
     * @param string $reason lease: its lease ended; deleted: the server has it no more, before that;
     *                       overwritten; fork: it is another process's; released: by this program
     */
    public function __construct(public readonly string $key, public readonly string $reason)
    {
        parent::__construct("the hold of '$key' was lost: $reason");
    }
}

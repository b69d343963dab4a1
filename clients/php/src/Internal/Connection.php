<?php

declare(strict_types=1);

namespace Rlock\Internal;

/** @internal Something by which commands reach one server. */
interface Connection
{
    /**
     * The reply: null, an integer, a text or an array.
     *
     * @param list<string> $command
     * @param float        $seconds how long a reply is waited for
     *
     * @throws ServerError
     * @throws Broken
     */
    public function call(array $command, float $seconds): mixed;
}

<?php

declare(strict_types=1);

namespace Rlock\Internal;

/** @internal The connections to where the locks are. */
interface Link
{
    public function isCluster(): bool;

    /** For what does not wait: the program's own connection, if it can be used. */
    public function near(string $key, float $seconds): Connection;

    /** One of rlock's own, which nobody else has. Who is done gives it back; else it is closed. */
    public function take(string $key, float $seconds): Stream;

    public function giveBack(Connection $connection, string $key): void;

    /**
     * Sends commands over a connection of their own, without waiting for it to be ready.
     *
     * @return list<mixed> their replies
     */
    public function last(string $key, array $commands, float $seconds): array;

    /** What is to be done before the same is asked again, after an error that means "later, or elsewhere". */
    public function elsewhere(ServerError $error): void;
}

<?php

declare(strict_types=1);

use Rlock\Symfony\RlockStore;
use Rlock\Tests\Support\RealServer;
use Symfony\Component\Lock\PersistingStoreInterface;
use Symfony\Component\Lock\Tests\Store\AbstractStoreTestCase;
use Symfony\Component\Lock\Tests\Store\BlockingStoreTestTrait;
use Symfony\Component\Lock\Tests\Store\ExpiringStoreTestTrait;
use Symfony\Component\Lock\Tests\Store\SharedLockStoreTestTrait;

final class RlockStoreTest extends AbstractStoreTestCase
{
    use BlockingStoreTestTrait;
    use ExpiringStoreTestTrait;
    use SharedLockStoreTestTrait;

    /** Also called by a child that the test forks, which must not use its parent's connection. */
    public function getStore(): PersistingStoreInterface
    {
        return new RlockStore(RealServer::shared(getenv('FOREIGN_BACKEND'))->redis());
    }

    protected function getClockDelay(): int
    {
        return 250000;
    }

    protected function setUp(): void
    {
        // Before it forks.
        RealServer::shared(getenv('FOREIGN_BACKEND'));
    }
}

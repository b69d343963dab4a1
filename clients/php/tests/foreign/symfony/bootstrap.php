<?php

declare(strict_types=1);

require __DIR__ . '/../../bootstrap.php';
foreach (['AbstractStoreTestCase', 'BlockingStoreTestTrait', 'ExpiringStoreTestTrait', 'SharedLockStoreTestTrait'] as $file) {
    require getenv('FOREIGN_FOLDER') . "/Tests/Store/$file.php";
}

<?php

declare(strict_types=1);

require __DIR__ . '/../../bootstrap.php';
require __DIR__ . '/InteractsWithRedis.php';
require __DIR__ . '/TestCase.php';

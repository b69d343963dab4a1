<?php

declare(strict_types=1);

// Waits for a lock of a cluster: cluster PORT KEY.

require __DIR__ . '/../bootstrap.php';

[, $port, $key] = $argv;
echo "waits\n";
$hold = (new Rlock\Locks([new Rlock\Server(port: (int) $port)]))->acquire($key, 60);
echo "has it\n";
$hold->release();

<?php

declare(strict_types=1);

// Acquires a lock again and again, and has it most of the time: busy PORT KEY.

require __DIR__ . '/../bootstrap.php';

[, $port, $key] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
$locks = new Rlock\Locks($redis);
$locks->acquire($key, 30)->release();
echo "busy\n";
while (true) {
    $hold = $locks->acquire($key, 30);
    usleep(5000);
    $hold->release();
}

<?php

declare(strict_types=1);

// Waits for a lock: wait PORT KEY SECONDS. Says what happens, and releases it at the next line of its input.

require __DIR__ . '/../bootstrap.php';

[, $port, $key, $wait] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
echo "waits\n";
$hold = (new Rlock\Locks($redis))->acquire($key, (float) $wait);
echo "has it {$hold->token}\n";
if (fgets(STDIN) === "release\n") {
    $hold->release();
    echo "released\n";
}

<?php

declare(strict_types=1);

// Forks while it has a lock: fork PORT KEY. The child says what it sees, then the parent.

require __DIR__ . '/../bootstrap.php';

[, $port, $key] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
$locks = new Rlock\Locks($redis);
$hold = $locks->acquire($key);
$locks->acquire("$key:waited", lease: 60)->release();
$child = pcntl_fork();
if ($child === 0) {
    try {
        $hold->release();
        $says = 'released';
    } catch (Rlock\Exception\LostException $e) {
        $says = $e->getMessage();
    }
    $other = $locks->acquire("$key:child");
    echo "child: {$hold->lostReason()}, $says, has another lock\n";
    $other->release();
    exit(0);
}
pcntl_waitpid($child, $status);
$hold->renew();
$hold->release();
echo "parent: has it\n";

<?php

declare(strict_types=1);

// Ends by `exit` in a signal's handler while it asks for locks: leave PORT KEY MICROSECONDS. It has KEY, and takes
// KEY:free again and again.

require __DIR__ . '/../bootstrap.php';

[, $port, $key, $after] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
$locks = new Rlock\Locks($redis);
$hold = $locks->acquire($key, lease: 60);
pcntl_async_signals(true);
pcntl_signal(SIGUSR1, static fn () => exit(0));
$me = getmypid();
if (pcntl_fork() === 0) {
    usleep((int) $after);
    posix_kill($me, SIGUSR1);
    posix_kill(getmypid(), SIGKILL);
}
while (true) {
    $locks->acquire("$key:free", wait: 5, lease: 60)->release();
    $locks->tryAcquire($key, wait: 0.003, lease: 60);
}

<?php

declare(strict_types=1);

// Asks for locks for half a second while signals come whose handler throws: storm PORT KEY phpredis|predis|own. It has KEY,
// waits for it, and takes KEY:free. Says how often a handler threw, and what stayed on the server.

require __DIR__ . '/../bootstrap.php';

final class Interrupted extends RuntimeException
{
    public static bool $isWanted = false;
}

[, $port, $key, $kind] = $argv;
$server = new Rlock\Server(port: (int) $port);
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
$client = ['phpredis' => $redis, 'predis' => new Predis\Client(['port' => (int) $port]), 'own' => $server][$kind];
$hold = (new Rlock\Locks($server))->acquire($key, lease: 600);
pcntl_async_signals(true);
pcntl_signal(SIGUSR1, static function (): void {
    if (Interrupted::$isWanted) {
        Interrupted::$isWanted = false;
        throw new Interrupted();
    }
});
$me = getmypid();
$child = pcntl_fork();
if ($child === 0) {
    while (posix_getppid() === $me) {
        usleep(random_int(0, 1500));
        posix_kill($me, SIGUSR1);
    }
    posix_kill(getmypid(), SIGKILL);
}
$thrown = $left = 0;
for ($end = microtime(true) + 0.5; microtime(true) < $end;) {
    $locks = new Rlock\Locks($client, server: $server);
    foreach ([$key, "$key:free", "$key:free"] as $wanted) {
        $got = null;
        try {
            Interrupted::$isWanted = true;
            $got = $locks->tryAcquire($wanted, wait: INF, lease: 60);
            Interrupted::$isWanted = false;
        } catch (Interrupted) {
            ++$thrown;
        }
        try {
            // Its destructor releases it.
            Interrupted::$isWanted = $got !== null;
            $got = null;
            Interrupted::$isWanted = false;
        } catch (Interrupted) {
            ++$thrown;
        }
        Interrupted::$isWanted = false;
        $left += $redis->exists("$key:free");
        $redis->del("$key:free");
    }
}
posix_kill($child, SIGKILL);
pcntl_waitpid($child, $status);
$hold->release();
$waiting = array_filter($redis->keys("*$key*"), static fn (string $name): bool => !str_contains($name, '_token:'));
echo $thrown > 0 ? 'thrown' : 'not thrown', ", $left left, waiting: ", implode(' ', $waiting), "\n";

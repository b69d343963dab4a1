<?php

declare(strict_types=1);

// Asks for locks for half a second while signals come whose handler throws: storm PORT KEY phpredis|predis|own. It has KEY,
// waits for it, and takes KEY:free. Says whether a handler threw and all of that was seen, and what stayed on the server.

use Rlock\Tests\Support\Interrupted;
use Rlock\Tests\Support\Storm;

require __DIR__ . '/../bootstrap.php';

[, $port, $key, $kind] = $argv;
$server = new Rlock\Server(port: (int) $port);
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
$client = ['phpredis' => $redis, 'predis' => new Predis\Client(['port' => (int) $port]), 'own' => $server][$kind];
// A wait that no handler ends goes on until the end of this lease.
$hold = (new Rlock\Locks($server))->acquire($key, lease: 20);
$storm = new Storm(1500);
$seen = $left = 0;
for ($end = microtime(true) + 0.5; microtime(true) < $end;) {
    $locks = new Rlock\Locks($client, server: $server);
    foreach ([$key, "$key:free", "$key:free"] as $wanted) {
        $got = null;
        try {
            $storm->isWanted = true;
            $got = $locks->tryAcquire($wanted, wait: INF, lease: 60);
            $storm->isWanted = false;
        } catch (Interrupted) {
            ++$seen;
        }
        $isOn = pcntl_async_signals();
        if (!$isOn || $got?->key === $key) {
            $what = $isOn ? 'the wait went on until the lease had ended' : 'signals are off';
            exit("$what, after {$storm->thrown} thrown, $seen seen\n");
        }
        try {
            // Its destructor releases it.
            $storm->isWanted = $got !== null;
            $got = null;
            $storm->isWanted = false;
        } catch (Interrupted) {
            ++$seen;
        }
        $storm->isWanted = false;
        $left += $redis->exists("$key:free");
        $redis->del("$key:free");
    }
}
$storm->end();
$hold->release();
$waiting = array_filter($redis->keys("*$key*"), static fn (string $name): bool => !str_contains($name, '_token:'));
$isSeen = $seen === $storm->thrown ? 'all seen' : "{$storm->thrown} times, $seen seen";
echo $storm->thrown > 0 ? 'thrown' : 'not thrown', ", $isSeen, $left left, waiting: ", implode(' ', $waiting), "\n";

<?php

declare(strict_types=1);

// Asks for locks for half a second while signals come whose handler throws: storm PORT KEY KIND. It has KEY, waits for it,
// and takes KEY:free. Says whether a handler threw and all of that was seen, and what stayed on the server.

use Rlock\Hold;
use Rlock\Internal\Engine;
use Rlock\Locks;
use Rlock\Server;
use Rlock\Tests\Support\Storm;
use Symfony\Component\Lock\Key;

require __DIR__ . '/../bootstrap.php';

[, $port, $key, $kind] = $argv;
$server = new Server(port: (int) $port);
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
$client = ['predis' => new Predis\Client(['port' => (int) $port]), 'own' => $server][$kind] ?? $redis;
// Each makes what acquires a lock, and gives back what has it.
$make = [
    'symfony' => static function () use ($client): Closure {
        $store = new Rlock\Symfony\RlockStore($client);
        return static function (string $key) use ($store): Key {
            $state = new Key($key);
            $store->waitAndSave($state);
            return $state;
        };
    },
    'laravel' => static function () use ($client): Closure {
        $engine = Engine::over($client, 5);
        return static fn (string $key): bool => (new Rlock\Laravel\Lock($engine, null, $key, 60, 'storm'))->block(INF);
    },
][$kind] ?? static function () use ($client, $server): Closure {
    $locks = new Locks($client, server: $server);
    return static fn (string $key): Hold => $locks->acquire($key, wait: INF, lease: 60);
};
// All classes are there before the signals come: PHP ends where a handler throws while it loads the parent of one.
$make()("$key:free");
$redis->del("$key:free");
// A wait that no handler ends goes on until the end of this lease.
$hold = (new Locks($server))->acquire($key, lease: 20);
$storm = new Storm(1500);
$left = 0;
for ($end = microtime(true) + 0.5; microtime(true) < $end;) {
    $acquire = $make();
    foreach ([$key, "$key:free", "$key:free"] as $wanted) {
        $got = null;
        $storm->over(function () use ($acquire, $wanted, &$got): void {
            $got = $acquire($wanted);
        });
        $isOn = pcntl_async_signals();
        if (!$isOn || $got !== null && $wanted === $key) {
            $what = $isOn ? 'the wait went on until the lease had ended' : 'signals are off';
            exit("$what, after {$storm->thrown} thrown, {$storm->seen} seen\n");
        }
        if ($got instanceof Hold) {
            // Its destructor releases it.
            $storm->over(function () use (&$got): void {
                $got->renew();
                $got = null;
            });
            $got = null;
        } elseif ($got !== null) {
            $redis->del($wanted);
        }
        $left += $redis->exists("$key:free");
        $redis->del("$key:free");
    }
}
$storm->end();
$hold->release();
$waiting = array_filter($redis->keys("*$key*"), static fn (string $name): bool => !str_contains($name, '_token:'));
$isSeen = $storm->seen === $storm->thrown ? 'all seen' : "{$storm->thrown} times, {$storm->seen} seen";
echo $storm->thrown > 0 ? 'thrown' : 'not thrown', ", $isSeen, $left left, waiting: ", implode(' ', $waiting), "\n";

<?php

// The benchmark's program in PHP: bench.php SIDE PORT WORKERS TURNS MS. Its orders stand in
// bench/clients/language.rs. PHP does one thing at a time: a process has one worker, and two workers
// of a warm-up take turns.

declare(strict_types=1);

require __DIR__ . '/rlock/autoload.php';
require '/usr/share/php/Symfony/Component/Lock/autoload.php';

use Rlock\Locks;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

const KEY = 'bench:lock';

[, $side, $port, , $turns, $ms] = $argv;

function client(): Redis
{
    global $port;
    $redis = new Redis();
    $redis->connect('127.0.0.1', (int) $port);
    return $redis;
}

/** How one turn with a lock is had. */
$worker = match ($side) {
    'rlock' => function (): Closure {
        $locks = new Locks(client());
        return function (string $key, callable $act) use ($locks): void {
            $hold = $locks->acquire($key, wait: INF);
            $act();
            $hold->release();
        };
    },
    'symfony' => function (): Closure {
        $locks = new LockFactory(new RedisStore(client()));
        return function (string $key, callable $act) use ($locks): void {
            $lock = $locks->createLock($key, 10);
            $lock->acquire(true);
            $act();
            $lock->release();
        };
    },
};

/** ns for each. */
function timed(int $ms, callable $act): int
{
    [$begin, $done] = [hrtime(true), 0];
    while (hrtime(true) < $begin + $ms * 1_000_000) {
        $act();
        $done++;
    }
    return intdiv(hrtime(true) - $begin, $done);
}

$mine = $worker();
$two = [$mine, $worker()];
$end = hrtime(true) + (int) $ms * 1_000_000;
while ($turns > 0 && hrtime(true) < $end) {
    $two[$turns % 2]('warm:' . getmypid(), function () use (&$turns): void {
        $turns--;
    });
}
unset($two);
echo "ready\n";

$had = [];
$goes = false;
stream_set_blocking(STDIN, false);
while (!feof(STDIN)) {
    $in = [STDIN];
    $none = [];
    if (stream_select($in, $none, $none, $goes ? 0 : 1) && ($line = fgets(STDIN)) !== false) {
        [$order, $number] = explode(' ', trim($line)) + ['', '0'];
        echo match ($order) {
            'go' => (int) !($goes = true),
            'turns' => implode(' ', $had),
            'pairs' => timed((int) $number, fn () => $mine('bench:free', fn () => null)),
            'pings' => (function () use ($number): int {
                $redis = client();
                return timed((int) $number, fn () => $redis->ping());
            })(),
        }, "\n";
    }
    if ($goes) {
        $mine(KEY, function () use (&$had): void {
            array_push($had, 0, hrtime(true), hrtime(true));
        });
    }
}

<?php

declare(strict_types=1);

// The client's autoload.php, or Composer's.
require __DIR__ . '/../autoload.php';

use Rlock\Exception\LostException;
use Rlock\Exception\NotAcquiredException;
use Rlock\Hold;
use Rlock\Locks;

$redis = new Redis();
$redis->connect('localhost', (int) (getenv('RLOCK_PORT') ?: 6379));
$locks = new Locks($redis);

try {
    $locks->with('jobs:nightly', function (Hold $hold): void {
        echo "nobody else has {$hold->key}, and its token is {$hold->token}\n";
        usleep(100_000); // the work: its storage refuses a smaller token than it has seen
    }, wait: 10, lease: 30);
    echo "done\n";
} catch (NotAcquiredException) {
    echo "somebody else has it\n";
} catch (LostException $e) {
    echo "was not alone all the time: {$e->getMessage()}\n";
}

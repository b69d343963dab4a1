<?php

declare(strict_types=1);

require __DIR__ . '/../autoload.php';

$redis = new Redis();
$redis->connect('localhost', (int) (getenv('RLOCK_PORT') ?: 6379));
$locks = new Rlock\Locks($redis);

$hold = $locks->acquire('import', wait: 10, lease: 30);
try {
    foreach (range(1, 5) as $part) {
        // Nobody does it for us: the lease must be longer than a part of the work.
        if ($hold->remaining() < 20) {
            $hold->renew(); // LostException: somebody else may have it by now
        }
        echo "part $part, by {$hold->token}\n";
    }
} finally {
    $hold->release();
}

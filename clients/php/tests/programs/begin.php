<?php

declare(strict_types=1);

// Begins again and again what needs no server, the release of what is released, while signals come whose handler throws:
// begin PORT KEY. Says after how many of those signals were off.

use Rlock\Tests\Support\Storm;

require __DIR__ . '/../bootstrap.php';

[, $port, $key] = $argv;
$hold = (new Rlock\Locks(new Rlock\Server(port: (int) $port)))->acquire($key);
$hold->release();
$storm = new Storm(100);
for ($off = 0; $storm->seen < 500;) {
    $storm->over(function () use ($hold): void {
        while (true) {
            $hold->release();
        }
    });
    $off += pcntl_async_signals(true) ? 0 : 1;
}
$storm->end();
echo "thrown, $off times off\n";

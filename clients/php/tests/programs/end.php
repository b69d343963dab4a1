<?php

declare(strict_types=1);

// Ends while it has a lock: end PORT KEY end|exit|exception|memory|time.

require __DIR__ . '/../bootstrap.php';

[, $port, $key, $how] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
$hold = (new Rlock\Locks($redis))->acquire($key, lease: 600);
echo "has it\n";
fgets(STDIN);
ini_set('display_errors', '0');
ini_set('log_errors', '0');
switch ($how) {
    case 'exit':
        exit(1);
    case 'exception':
        throw new DomainException('not caught');
    case 'memory':
        ini_set('memory_limit', '16M');
        str_repeat('a', 1 << 30);
        break;
    case 'time':
        set_time_limit(1);
        while (true) {
            sqrt(2);
        }
}

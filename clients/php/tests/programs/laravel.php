<?php

declare(strict_types=1);

// A process of a Laravel application that releases another one's lock: laravel PORT KEY OWNER.

require __DIR__ . '/../bootstrap.php';

[, $port, $key, $owner] = $argv;
Rlock\Tests\Support\LaravelApp::make((int) $port);
echo "there\n";
fgets(STDIN);
usleep(100_000);
echo Illuminate\Support\Facades\Cache::restoreLock($key, $owner)->release() ? "released\n" : "not released\n";

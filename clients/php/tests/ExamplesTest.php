<?php

declare(strict_types=1);

namespace Rlock\Tests;

use Rlock\Tests\Support\BackendTestCase;
use Rlock\Tests\Support\RealServer;

/** The programs that the README shows. */
final class ExamplesTest extends BackendTestCase
{
    /** @dataProvider backends */
    public function testTheyRun(string $backend): void
    {
        $first = $this->output('first', $backend);
        $this->assertMatchesRegularExpression('/^nobody else has jobs:nightly, and its token is \d+\ndone$/', $first);
        $this->assertMatchesRegularExpression('/^(part \d, by \d+\n?){5}$/', $this->output('renew', $backend));
        $this->assertFalse($this->exists($backend, 'jobs:nightly'));
    }

    private function output(string $name, string $backend): string
    {
        $port = RealServer::shared($backend)->port;
        return trim(shell_exec("RLOCK_PORT=$port " . PHP_BINARY . ' ' . __DIR__ . "/../examples/$name.php 2>&1"));
    }
}

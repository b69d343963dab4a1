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
        $hold = $this->locks($backend)->acquire('jobs:nightly', lease: 60);
        $this->assertSame('somebody else has it', $this->output('first', $backend));
        $hold->release();
    }

    private function output(string $name, string $backend): string
    {
        $port = RealServer::shared($backend)->port;
        return trim(shell_exec("RLOCK_PORT=$port " . PHP_BINARY . ' ' . __DIR__ . "/../examples/$name.php 2>&1"));
    }
}

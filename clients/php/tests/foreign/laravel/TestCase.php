<?php

declare(strict_types=1);

namespace Orchestra\Testbench;

use Illuminate\Container\Container;
use Rlock\Tests\Support\LaravelApp;
use Rlock\Tests\Support\RealServer;

/** In the place of a whole Laravel: an application whose store "redis" has the driver "rlock". */
abstract class TestCase extends \PHPUnit\Framework\TestCase
{
    protected ?Container $app = null;

    protected function setUp(): void
    {
        $this->app = LaravelApp::make(RealServer::shared(getenv('FOREIGN_BACKEND'))->port, database: 5);
    }
}

<?php

declare(strict_types=1);

namespace Illuminate\Foundation\Testing\Concerns;

/** Theirs looks for a server at a fixed place, which these tests have not. */
trait InteractsWithRedis
{
    public function setUpRedis(): void
    {
        $this->app['redis']->connection()->flushdb();
    }

    public function tearDownRedis(): void
    {
        $this->app['redis']->connection()->flushdb();
    }
}

<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Hold;

/**
 * @internal After a fatal error (no memory, max_execution_time) PHP calls no destructors: then the holds are
 * released here.
 */
final class AtExit
{
    private const FATAL = E_ERROR | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;

    private static ?\WeakMap $holds = null;

    public static function add(Hold $hold): void
    {
        if (self::$holds === null) {
            self::$holds = new \WeakMap();
            register_shutdown_function(self::release(...));
        }
        self::$holds[$hold] = true;
    }

    private static function release(): void
    {
        if (((error_get_last()['type'] ?? 0) & self::FATAL) === 0) {
            return;
        }
        foreach (self::$holds as $hold => $_) {
            $hold->__destruct();
        }
    }
}

<?php

declare(strict_types=1);

namespace Rlock\Internal;

/**
 * @internal After a fatal error (no memory, max_execution_time) PHP calls no destructors: then what is held or under
 * way is released here.
 */
final class AtExit
{
    private const FATAL = E_ERROR | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;

    /** What is to be undone if the program exits now, in the handler of a signal. */
    public static ?\Closure $undo = null;
    private static ?\WeakMap $open = null;

    public static function add(object $one): void
    {
        if (self::$open === null) {
            self::$open = new \WeakMap();
            register_shutdown_function(self::release(...));
        }
        self::$open[$one] = true;
    }

    private static function release(): void
    {
        self::$undo?->__invoke();
        if (((error_get_last()['type'] ?? 0) & self::FATAL) === 0) {
            return;
        }
        foreach (self::$open as $one => $_) {
            $one->__destruct();
        }
    }
}

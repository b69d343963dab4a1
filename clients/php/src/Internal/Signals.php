<?php

declare(strict_types=1);

namespace Rlock\Internal;

/**
 * @internal Where signals are asynchronous, a handler's exception may come between any two steps. PHP (8.2 at least)
 * loses the signal if another exception is on its way just then, and frees what it should not if a call's arguments
 * are just being put together, with a jump (`?:`, `??`) between them. So while a request is under way handlers run only
 * where it waits, and at its end.
 */
final class Signals
{
    /** A signal that came just before a wait is seen after so many seconds. */
    public const LOOK = 1.0;

    /** Whether handlers wait on our behalf. */
    private static bool $areHeld = false;
    /** Whether they may run at point(): who waits there sees to what they throw. */
    private static bool $areOpen = false;

    /** Handlers wait from now on. Whether they did not before: then let() must follow. If one throws here, they do not. */
    public static function hold(): bool
    {
        $isThere = function_exists('pcntl_async_signals') && function_exists('pcntl_signal_dispatch');
        if (!$isThere || !pcntl_async_signals()) {
            return false;
        }
        try {
            pcntl_async_signals(false);
        } catch (\Throwable $e) {
            // The handler of a signal that came just before it was off: nobody would let() handlers run again.
            pcntl_async_signals(true);
            throw $e;
        }
        self::$areHeld = true;
        return true;
    }

    /** What hold() returned. Handlers that had to wait run now, and may throw. */
    public static function let(bool $isOurs): void
    {
        if ($isOurs) {
            self::$areHeld = false;
            pcntl_async_signals(true);
            pcntl_signal_dispatch();
        }
    }

    /**
     * Runs $body; handlers wait for its end, but for where it waits itself.
     *
     * @template T
     *
     * @param \Closure(): T $body
     *
     * @return T
     */
    public static function held(\Closure $body): mixed
    {
        $isHeld = self::hold();
        try {
            $result = $body();
        } finally {
            self::let($isHeld);
        }
        // From the last look for signals to the program there are neither calls nor jumps, where one could come.
        return $result;
    }

    /**
     * The same, and $undo after whatever throws, or exits: so may the handler of a signal at the end of $body, when nobody
     * knows yet what was made.
     *
     * @template T
     *
     * @param \Closure(): T $body
     * @param \Closure(): void $undo
     *
     * @return T
     */
    public static function allOrNothing(\Closure $body, \Closure $undo): mixed
    {
        $process = getmypid();
        $before = AtExit::$undo;
        // Not by a child that a handler forks.
        AtExit::$undo = static fn () => $process === getmypid() ? $undo() : null;
        try {
            $result = self::held($body);
            AtExit::$undo = $before;
            return $result;
        } catch (\Throwable $e) {
            AtExit::$undo = $before;
            self::held($undo);
            throw $e;
        }
    }

    public static function areHeld(): bool
    {
        return self::$areHeld;
    }

    /** Whether handlers may run at point(). Returns what was before. */
    public static function open(bool $areOpen): bool
    {
        $before = self::$areOpen;
        self::$areOpen = $areOpen;
        return $before;
    }

    public static function areOpen(): bool
    {
        return self::$areOpen;
    }

    public static function point(): void
    {
        if (!self::$areOpen) {
            return;
        }
        // A handler may acquire a lock on its own.
        self::$areOpen = self::$areHeld = false;
        try {
            pcntl_signal_dispatch();
        } finally {
            self::$areOpen = self::$areHeld = true;
        }
    }
}

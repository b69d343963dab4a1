<?php

declare(strict_types=1);

namespace Rlock\Internal;

/** @internal The program's own connection, of phpredis. */
final class PhpRedis implements Connection
{
    public function __construct(private readonly \Redis $redis)
    {
    }

    /** Between MULTI and EXEC, or in a pipeline, a command has no reply; and it may have no connection. */
    public function isUsable(): bool
    {
        try {
            return $this->redis->isConnected() && $this->redis->getMode() === \Redis::ATOMIC;
        } catch (\RedisException) {
            return false;
        }
    }

    public function call(array $command, float $seconds): mixed
    {
        // 0 is PHP's own at the beginning, and set later it would mean no time at all.
        $usual = $this->redis->getOption(\Redis::OPT_READ_TIMEOUT) ?: (float) ini_get('default_socket_timeout');
        try {
            $this->redis->clearLastError();
            $this->redis->setOption(\Redis::OPT_READ_TIMEOUT, $seconds);
            $reply = $this->redis->rawCommand(...$command);
            $error = $reply === false ? $this->redis->getLastError() : null;
        } catch (\RedisException $e) {
            // Some errors of the server are thrown. It calls those of the connection its last error too.
            $error = preg_match('/^[A-Z]{2,}( |$)/', $e->getMessage()) ? $e->getMessage() : null;
            if ($error === null) {
                // phpredis keeps it after a time-out, and the program's next command would read our reply. Once
                // closed, it connects anew when it is used again.
                $this->redis->close();
                throw new Broken($e->getMessage(), 0, $e);
            }
        } finally {
            $this->redis->clearLastError();
            $this->redis->setOption(\Redis::OPT_READ_TIMEOUT, $usual);
        }
        if ($error !== null) {
            throw new ServerError($error);
        }
        return $reply === false ? null : $reply;
    }
}

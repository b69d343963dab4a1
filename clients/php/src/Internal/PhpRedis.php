<?php

declare(strict_types=1);

namespace Rlock\Internal;

/** @internal The program's own connection, of phpredis. */
final class PhpRedis implements Connection
{
    public function __construct(private readonly \Redis $redis)
    {
    }

    /** Between MULTI and EXEC, or in a pipeline, a command has no reply. */
    public function isUsable(): bool
    {
        return $this->redis->getMode() === \Redis::ATOMIC;
    }

    public function call(array $command, float $seconds): mixed
    {
        // 0 is PHP's own at the beginning, and set later it would mean no time at all.
        $usual = $this->redis->getOption(\Redis::OPT_READ_TIMEOUT) ?: (float) ini_get('default_socket_timeout');
        try {
            $this->redis->clearLastError();
            $this->redis->setOption(\Redis::OPT_READ_TIMEOUT, $seconds);
            try {
                $reply = $this->redis->rawCommand(...$command);
            } catch (\RedisException $e) {
                if (($error = $this->redis->getLastError()) !== null) {
                    throw new ServerError($error);
                }
                throw new Broken($e->getMessage(), 0, $e);
            }
            if ($reply === false && ($error = $this->redis->getLastError()) !== null) {
                throw new ServerError($error);
            }
        } catch (Broken $e) {
            // phpredis keeps it after a time-out, and the program's next command would read our reply. Once
            // closed, it connects anew when it is used again.
            $this->redis->close();
            throw $e;
        } finally {
            $this->redis->clearLastError();
            $this->redis->setOption(\Redis::OPT_READ_TIMEOUT, $usual);
        }
        return $reply === false ? null : $reply;
    }
}

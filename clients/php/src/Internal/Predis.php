<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Predis\Client;
use Predis\Connection\AbstractConnection;
use Predis\Connection\NodeConnectionInterface;
use Predis\PredisException;

/** @internal The program's own connection, of Predis. */
final class Predis implements Connection
{
    public function __construct(private readonly Client $client)
    {
    }

    public function isUsable(): bool
    {
        return $this->client->getConnection() instanceof NodeConnectionInterface;
    }

    public function call(array $command, float $seconds): mixed
    {
        $connection = $this->client->getConnection();
        $failed = false;
        try {
            $this->bound($connection, $seconds);
            $reply = $this->client->executeRaw($command, $failed);
        } catch (PredisException $e) {
            $connection->disconnect();
            throw new Broken($e->getMessage(), 0, $e);
        } finally {
            $this->bound($connection, null);
        }
        if ($failed) {
            throw new ServerError($reply);
        }
        return $reply;
    }

    /** How long it waits for a reply; null: as the program has it. */
    private function bound(object $connection, ?float $seconds): void
    {
        if ($seconds === null && !$connection->isConnected() || !$connection instanceof AbstractConnection) {
            return;
        }
        $stream = $connection->getResource();
        if (is_resource($stream)) {
            $seconds ??= (float) ($connection->getParameters()->read_write_timeout ?? ini_get('default_socket_timeout'));
            stream_set_timeout($stream, (int) $seconds, (int) (fmod($seconds, 1) * 1e6));
        }
    }
}

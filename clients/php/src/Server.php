<?php

declare(strict_types=1);

namespace Rlock;

/** Where a server is, and how one logs in there. */
final class Server
{
    /**
     * @param string     $host a name, an address, or the path of a Unix socket
     * @param array|null $tls  null: without TLS; else PHP's "ssl" context options, [] for none
     */
    public function __construct(
        public readonly string $host = '127.0.0.1',
        public readonly int $port = 6379,
        public readonly ?string $user = null,
        #[\SensitiveParameter]
        public readonly ?string $password = null,
        public readonly int $database = 0,
        public readonly ?array $tls = null,
    ) {
        if ($host === '') {
            throw new \InvalidArgumentException('the host must not be empty');
        }
    }

    /** The same way in, to another node of its cluster. */
    public function at(string $host, int $port): self
    {
        return new self($host, $port, $this->user, $this->password, 0, $this->tls);
    }

    /** The address, as PHP's streams have it. */
    public function address(): string
    {
        if ($this->host[0] === '/') {
            return "unix://{$this->host}";
        }
        $host = str_contains($this->host, ':') && $this->host[0] !== '[' ? "[{$this->host}]" : $this->host;
        return "tcp://$host:{$this->port}";
    }

    /** Without the password, in dumps and traces. */
    public function __debugInfo(): array
    {
        return ['address' => $this->address(), 'user' => $this->user, 'database' => $this->database];
    }
}

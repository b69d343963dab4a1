<?php

declare(strict_types=1);

namespace Rlock\Tests\Support;

use Rlock\Internal\Stream;
use Rlock\Server;

/** A server of the tests' own, on a free port. */
final class RealServer
{
    /** @var array<string, self> those that tests share */
    private static array $shared = [];

    /** @var resource|null */
    private $process;
    private readonly string $folder;
    private ?Stream $admin = null;

    /** @param list<string> $options further ones of the command line */
    private function __construct(bool $module, array $options, public readonly int $port)
    {
        $this->folder = sys_get_temp_dir() . '/rlock-php-' . getmypid() . "-$port";
        mkdir($this->folder);
        $command = [
            getenv('RLOCK_SERVER') ?: 'redis-server', '--port', (string) $port, '--save', '', '--dir', $this->folder,
            ...($module ? ['--loadmodule', self::module()] : []), ...$options,
        ];
        $log = ['file', "{$this->folder}/log", 'a'];
        $this->process = proc_open($command, [['file', '/dev/null', 'r'], $log, $log], $pipes);
        $pid = getmypid();
        // Not by a child that a test forks.
        register_shutdown_function(fn () => $pid === getmypid() ? $this->stop() : null);
        Until::true(fn (): bool => $this->isThere(), "the server on port $port answers");
    }

    /** @param list<string> $options */
    public static function start(bool $module, array $options = []): self
    {
        return new self($module, $options, self::freePort());
    }

    /** One for all tests: "module", "functions" or "script". */
    public static function shared(string $backend): self
    {
        return self::$shared[$backend] ??= self::start($backend === 'module', $backend !== 'script' ? [] : [
            '--rename-command', 'FCALL', '', '--rename-command', 'FCALL_RO', '', '--rename-command', 'FUNCTION', '',
        ]);
    }

    public static function freePort(): int
    {
        // Below 16,000: a node of a cluster has a second port, which is 10,000 more.
        do {
            $port = random_int(2000, 15999);
            $socket = @stream_socket_server("tcp://127.0.0.1:$port");
        } while ($socket === false);
        fclose($socket);
        return $port;
    }

    public function server(): Server
    {
        return new Server(port: $this->port);
    }

    public function redis(): \Redis
    {
        $redis = new \Redis();
        $redis->connect('127.0.0.1', $this->port, 5);
        return $redis;
    }

    public function predis(array $more = []): \Predis\Client
    {
        return new \Predis\Client(['host' => '127.0.0.1', 'port' => $this->port] + $more);
    }

    /** What a command replies, over a connection of its own. */
    public function call(string ...$command): mixed
    {
        if ($this->admin?->isAlive() !== true) {
            $this->admin = Stream::open($this->server(), 5);
        }
        return $this->admin->call($command, 5);
    }

    public function pause(): void
    {
        posix_kill($this->pid(), SIGSTOP);
    }

    public function goOn(): void
    {
        posix_kill($this->pid(), SIGCONT);
    }

    public function stop(): void
    {
        if ($this->process === null) {
            return;
        }
        posix_kill($this->pid(), SIGKILL);
        proc_close($this->process);
        $this->process = null;
        // They keep nothing, so there are no folders in it.
        array_map('unlink', glob("{$this->folder}/*"));
        rmdir($this->folder);
    }

    private static function module(): string
    {
        return getenv('RLOCK_MODULE') ?: __DIR__ . '/../../../../target/release/librlock.so';
    }

    private function pid(): int
    {
        return proc_get_status($this->process)['pid'];
    }

    private function isThere(): bool
    {
        if (!proc_get_status($this->process)['running']) {
            throw new \RuntimeException('no server: ' . file_get_contents("{$this->folder}/log"));
        }
        try {
            return $this->call('PING') === 'PONG';
        } catch (\Throwable) {
            return false;
        }
    }
}

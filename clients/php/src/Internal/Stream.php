<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Server;
use Rlock\Version;

/** @internal A connection of rlock's own, over PHP's streams. */
final class Stream implements Connection
{
    /** Of a parent's process: closed with the process, for TLS would say good-bye to the server. */
    private static array $inherited = [];

    /** @var resource|null */
    private $socket;
    private string $received = '';
    /** @var list<Push> */
    private array $pushes = [];
    private readonly int $pid;
    /** Whether it can be subscribed and send commands: RESP3. */
    public bool $isResp3 = false;

    private function __construct(private readonly Server $server, float $seconds)
    {
        $this->pid = getmypid();
        $this->socket = self::connect($server, $seconds);
    }

    /** @param float $seconds to connect and log in, at most */
    public static function open(Server $server, float $seconds): self
    {
        $end = Clock::monotonic() + $seconds;
        $stream = new self($server, $seconds);
        $stream->logIn($end);
        return $stream;
    }

    /**
     * Sends commands without waiting for anything before: a server that stands still gets them when it goes on.
     * Returns their replies.
     *
     * @param list<list<string>> $commands
     */
    public static function last(Server $server, array $commands, float $seconds): array
    {
        $end = Clock::monotonic() + $seconds;
        $stream = new self($server, $seconds);
        $greeting = $server->password === null ? [['HELLO', '3']]
            : [['HELLO', '3', 'AUTH', $server->user ?? 'default', $server->password]];
        if ($server->database !== 0) {
            $greeting[] = ['SELECT', (string) $server->database];
        }
        $replies = $stream->pipeline([...$greeting, ...$commands], max($end - Clock::monotonic(), 0));
        return array_slice($replies, count($greeting));
    }

    public function __destruct()
    {
        if ($this->pid === getmypid()) {
            $this->close();
        } elseif ($this->socket !== null) {
            self::$inherited[] = $this->socket;
        }
    }

    public function address(): string
    {
        return $this->server->address();
    }

    public function close(): void
    {
        if (is_resource($this->socket)) {
            fclose($this->socket);
        }
        $this->socket = null;
    }

    public function call(array $command, float $seconds): mixed
    {
        $reply = $this->pipeline([$command], $seconds)[0];
        return $reply instanceof ServerError ? throw $reply : $reply;
    }

    /**
     * The replies of several commands, where an error is a ServerError.
     *
     * @param list<list<string>> $commands
     */
    public function pipeline(array $commands, float $seconds): array
    {
        $end = Clock::monotonic() + $seconds;
        $this->write(implode('', array_map(Resp::command(...), $commands)), $end);
        $replies = [];
        while (count($replies) < count($commands)) {
            $next = $this->next($end);
            if ($next instanceof Push) {
                $this->pushes[] = $next;
            } else {
                $replies[] = $next[0];
            }
        }
        return $replies;
    }

    /** Sends and reads no reply: its replies are pushes. */
    public function send(array ...$commands): void
    {
        $this->write(implode('', array_map(Resp::command(...), $commands)), Clock::monotonic() + 5);
    }

    /** The next message of a channel; null: none came in this time. */
    public function message(float $seconds): ?string
    {
        $end = Clock::monotonic() + $seconds;
        while (true) {
            $push = array_shift($this->pushes);
            while ($push === null) {
                if (!$this->isReadable($end)) {
                    return null;
                }
                $next = $this->next(Clock::monotonic() + 5);
                $push = $next instanceof Push ? $next : null;
            }
            if (in_array($push->fields[0], ['message', 'smessage'], true)) {
                return $push->fields[2];
            }
            if ($push->fields[0] === 'sunsubscribe' && ($push->fields[2] ?? 0) === 0) {
                return '';
            }
        }
    }

    /** Whether it is open still, as far as can be seen from here. */
    public function isAlive(): bool
    {
        try {
            return $this->pid === getmypid() && ($this->fill(0) || true);
        } catch (Broken) {
            return false;
        }
    }

    /** Subscribes, and waits until the server says so. */
    public function subscribe(string $command, array $channels, float $seconds): void
    {
        $end = Clock::monotonic() + $seconds;
        $this->send([$command, ...$channels]);
        for ($missing = count($channels); $missing > 0;) {
            $next = $this->next($end);
            if (!$next instanceof Push) {
                throw $next[0] instanceof ServerError ? $next[0] : new Broken('a reply to nothing');
            }
            if ($next->fields[0] === strtolower($command)) {
                --$missing;
            } else {
                $this->pushes[] = $next;
            }
        }
    }

    /** Forgets messages that came for an earlier wait. */
    public function forgetMessages(): void
    {
        $this->pushes = [];
    }

    /** @return resource */
    private static function connect(Server $server, float $seconds)
    {
        $options = ['socket' => ['tcp_nodelay' => true]];
        if ($server->tls !== null) {
            $options['ssl'] = $server->tls + ['peer_name' => trim($server->host, '[]')];
        }
        $why = '';
        set_error_handler(static function (int $level, string $text) use (&$why): bool {
            $why .= $why === '' ? $text : "; $text";
            return true;
        });
        try {
            $end = Clock::monotonic() + $seconds;
            $socket = stream_socket_client(
                $server->address(), $code, $text, max($seconds, 0.001), STREAM_CLIENT_CONNECT, stream_context_create($options)
            );
            if ($socket !== false && $server->tls !== null) {
                $left = max($end - Clock::monotonic(), 0.001);
                stream_set_timeout($socket, (int) $left, (int) (fmod($left, 1) * 1e6));
                if (stream_socket_enable_crypto($socket, true, STREAM_CRYPTO_METHOD_TLS_CLIENT) !== true) {
                    fclose($socket);
                    $socket = false;
                }
            }
        } finally {
            restore_error_handler();
        }
        if ($socket === false) {
            throw new Broken("no connection to {$server->address()}: " . ($why !== '' ? $why : $text));
        }
        stream_set_blocking($socket, false);
        return $socket;
    }

    private function logIn(float $end): void
    {
        $server = $this->server;
        $left = static fn (): float => max($end - Clock::monotonic(), 0);
        $hello = ['HELLO', '3'];
        if ($server->password !== null) {
            array_push($hello, 'AUTH', $server->user ?? 'default', $server->password);
        }
        $name = ['CLIENT', 'SETNAME', 'rlock-php-' . Version::TEXT];
        $select = $server->database === 0 ? [] : [['SELECT', (string) $server->database]];
        $replies = $this->pipeline([$hello, $name, ...$select], $left());
        if ($replies[0] instanceof ServerError && $replies[0]->isUnknownCommand()) {
            // A server before 6.0, or where HELLO is renamed.
            if ($server->password !== null) {
                $this->call(['AUTH', ...($server->user === null ? [] : [$server->user]), $server->password], $left());
            }
            $replies = $this->pipeline([['PING'], $name, ...$select], $left());
        } else {
            $this->isResp3 = true;
        }
        // Who may not give itself a name does without.
        unset($replies[1]);
        foreach ($replies as $reply) {
            if ($reply instanceof ServerError) {
                throw $reply;
            }
        }
    }

    private function write(string $text, float $end): void
    {
        while ($text !== '') {
            $count = $this->socket === null ? false : @fwrite($this->socket, $text);
            if ($count === false) {
                throw new Broken("the connection to {$this->server->address()} has ended");
            }
            if ($count === 0) {
                $this->wait($end, writes: true) || throw $this->silent();
            }
            $text = substr($text, $count);
        }
    }

    private function next(float $end): Push|array
    {
        try {
            return Resp::read(
                fn (): string => $this->line($end),
                fn (int $count): string => substr($this->bytes($count + 2, $end), 0, $count),
            );
        } catch (Broken $e) {
            $this->close();
            throw $e;
        }
    }

    private function line(float $end): string
    {
        while (($at = strpos($this->received, "\r\n")) === false) {
            $this->receive($end);
        }
        return substr($this->bytes($at + 2, $end), 0, $at);
    }

    private function bytes(int $count, float $end): string
    {
        while (strlen($this->received) < $count) {
            $this->receive($end);
        }
        $bytes = substr($this->received, 0, $count);
        $this->received = substr($this->received, $count);
        return $bytes;
    }

    private function receive(float $end): void
    {
        $this->fill($end) || throw $this->silent();
    }

    /** Whether there is a beginning of a reply or a message; waits for it. */
    private function isReadable(float $end): bool
    {
        return str_contains($this->received, "\r\n") || $this->fill($end);
    }

    /** Whether more was received; waits for it. */
    private function fill(float $end): bool
    {
        while (true) {
            $text = $this->socket === null ? false : @fread($this->socket, 65536);
            if ($text !== false && $text !== '') {
                $this->received .= $text;
                return true;
            }
            if ($text === false || feof($this->socket)) {
                $this->close();
                throw new Broken("the connection to {$this->server->address()} has ended");
            }
            if (!$this->wait($end)) {
                return false;
            }
        }
    }

    /** Waits until there is something to read, or room to write. A signal's handler may run in between. */
    private function wait(float $end, bool $writes = false): bool
    {
        do {
            $left = $end - Clock::monotonic();
            if ($left <= 0) {
                return false;
            }
            Signals::point();
            $left = min($left, Signals::areOpen() ? Signals::LOOK : 3600);
            $read = $writes ? null : [$this->socket];
            $write = $writes ? [$this->socket] : null;
            $none = null;
            $ready = @stream_select($read, $write, $none, (int) $left, (int) (fmod($left, 1) * 1e6));
            Signals::point();
        } while (!$ready);
        return true;
    }

    private function silent(): Broken
    {
        return new Broken("no answer from {$this->server->address()} in time");
    }
}

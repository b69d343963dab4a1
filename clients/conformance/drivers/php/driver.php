<?php

declare(strict_types=1);

// The driver of the PHP client: a process for each request, as in a web server. The process of a hold stays, and is
// sent what is to be done with it. driver.php phpredis|predis

use Rlock\Exception;
use Rlock\Locks;
use Rlock\Mode;
use Rlock\Server;

require __DIR__ . '/../../../php/autoload.php';
if ($argv[1] === 'predis') {
    require_once 'Predis/autoload.php';
}
// Predis 1 has lines that PHP 8.2 says are old.
error_reporting(E_ALL & ~E_DEPRECATED);
set_error_handler(static function (int $level, string $text, string $file, int $line): bool {
    return (error_reporting() & $level) === 0 ? false : throw new ErrorException($text, 0, $level, $file, $line);
});

final class Cancelled extends RuntimeException
{
}

final class Failed extends RuntimeException
{
}

function say(array $what): void
{
    $line = json_encode($what, JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE) . "\n";
    while ($line !== '') {
        $line = substr($line, fwrite(STDOUT, $line));
    }
}

function failure(Throwable $e): array
{
    $word = match (true) {
        $e instanceof Exception\NotAcquiredException => 'not_acquired',
        $e instanceof Exception\LostException => 'lost',
        $e instanceof Exception\DeadlockException => 'deadlock',
        $e instanceof Exception\RefusedException => 'refused',
        $e instanceof Exception\ConnectionException => 'connection',
        $e instanceof Cancelled => 'cancelled',
        $e instanceof InvalidArgumentException => 'argument',
        default => 'other',
    };
    $answer = ['error' => $word, 'text' => $e::class . ': ' . $e->getMessage()];
    if ($e instanceof Exception\RefusedException) {
        $answer['code'] = $e->errorCode;
    }
    if ($e instanceof Exception\NotAcquiredException) {
        $answer += ['key' => $e->key, 'held_by' => null];
    }
    return $answer;
}

/** The program's own client; without one rlock connects on its own, and says what is wrong. */
function client(array $words, Server $server): object|array
{
    if ($words['cluster'] ?? false) {
        return [$server];
    }
    $tls = $server->tls !== null;
    try {
        if ($GLOBALS['argv'][1] === 'predis') {
            $client = new Predis\Client(array_filter([
                'scheme' => $tls ? 'tls' : 'tcp', 'host' => $server->host, 'port' => $server->port, 'ssl' => $server->tls,
                'password' => $server->password, 'username' => $server->user,
                'read_write_timeout' => ($words['tight'] ?? false) ? 0.2 : null,
            ], static fn ($value) => $value !== null));
            $client->connect();
            return $client;
        }
        $redis = new Redis();
        $context = $tls ? ['stream' => $server->tls] : [];
        @$redis->connect(($tls ? 'tls://' : '') . $server->host, $server->port, 0.5, null, 0, 0.5, $context);
        if ($server->password !== null) {
            $redis->auth($server->user === null ? $server->password : [$server->user, $server->password]);
        }
        if ($words['tight'] ?? false) {
            $redis->setOption(Redis::OPT_READ_TIMEOUT, 0.2);
        }
        return $redis;
    } catch (RedisException | Predis\PredisException | ErrorException) {
        return $server;
    }
}

function locks(array $words): Locks
{
    $tls = ($words['tls'] ?? false) ? ['cafile' => $words['ca']] : null;
    $server = new Server($words['host'], $words['port'], $words['user'] ?? null, $words['password'] ?? null, 0, $tls);
    $client = client($words, $server);
    $backend = isset($words['backend']) ? Rlock\Backend::from($words['backend']) : null;
    return new Locks($client, ($words['timeout'] ?? 5000) / 1000, $backend, is_array($client) ? null : $server);
}

/** The arguments of acquire(). */
function options(array $words): array
{
    foreach (['job', 'acks', 'max'] as $word) {
        isset($words[$word]) && throw new InvalidArgumentException("there is no $word");
    }
    $given = ['key' => $words['keys'] ?? $words['key']];
    if (isset($words['wait'])) {
        $given['wait'] = $words['wait'] === -1 ? INF : $words['wait'] / 1000;
    }
    if (isset($words['lease'])) {
        $given['lease'] = $words['lease'] / 1000;
    }
    if (isset($words['mode'])) {
        $given['mode'] = Mode::from(strtoupper($words['mode']));
    }
    return $given + array_intersect_key($words, ['limit' => 1, 'permits' => 1]);
}

/** Runs the body with the hold. */
function scope(Locks $locks, array $words): array
{
    $locks->with(...options($words), body: static function () use ($words): void {
        usleep($words['body'] * 1000);
        ($words['fail'] ?? false) && throw new Failed('the body failed');
    });
    return ['body' => 'done'];
}

function count_up(Locks $locks, array $words): array
{
    $done = 0;
    for ($end = microtime(true) + $words['for'] / 1000; microtime(true) < $end;) {
        try {
            $locks->with(...options($words), body: static function () use ($words): void {
                file_put_contents($words['file'], (string) ((int) @file_get_contents($words['file']) + 1));
            });
            ++$done;
        } catch (Exception\NotAcquiredException) {
        }
    }
    return ['done' => $done];
}

function in_child(Locks $locks, Rlock\Hold $hold): array
{
    [$ours, $its] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    if (pcntl_fork() === 0) {
        $seen = ['child_lost' => $hold->lostReason(), 'child_acquires' => false];
        $other = $locks->acquire("{$hold->key}:child", wait: 5);
        $seen['child_acquires'] = true;
        $other->release();
        fwrite($its, json_encode($seen) . "\n");
        exit(0);
    }
    fclose($its);
    return json_decode(fgets($ours), true);
}

/** What is asked of a hold. */
function with_hold(Locks $locks, Rlock\Hold $hold, array $words): array
{
    switch ($words['do']) {
        case 'release':
            $hold->release();
            return [];
        case 'renew':
            $hold->renew(isset($words['lease']) ? $words['lease'] / 1000 : null);
            return [];
        case 'state':
            return ['lost' => $hold->lostReason()];
        case 'fork':
            return in_child($locks, $hold);
    }
    throw new LogicException("there is no {$words['do']}");
}

function answer(array $words, callable $does): void
{
    try {
        $ok = $does();
        say(['id' => $words['id'], 'ok' => (object) $ok]);
    } catch (Throwable $e) {
        say(['id' => $words['id']] + failure($e));
    }
}

/** The process of one request, and of the hold that it got. */
function worker(array $words, array $where, $orders): void
{
    $locks = $hold = null;
    answer($words, static function () use ($words, $where, &$locks, &$hold): array {
        pcntl_async_signals(true);
        // A signal may be there already, and pcntl_signal() lets it in.
        pcntl_signal(SIGALRM, static function (): void {
            pcntl_signal(SIGALRM, SIG_IGN);
            throw new Cancelled('cancelled');
        });
        pcntl_sigprocmask(SIG_UNBLOCK, [SIGALRM]);
        $locks = locks($where);
        switch ($words['do']) {
            case 'scope':
                return scope($locks, $words);
            case 'count':
                return count_up($locks, $words);
        }
        $got = $locks->acquire(...options($words));
        // From here on it is too late; before, what was got is let go.
        pcntl_sigprocmask(SIG_BLOCK, [SIGALRM]);
        $hold = $got;
        return ['token' => $hold->token, 'owner' => $hold->owner];
    });
    pcntl_sigprocmask(SIG_BLOCK, [SIGALRM]);
    // Also without a hold: somebody may ask for it.
    while (isset($words['hold']) && ($line = fgets($orders)) !== false) {
        $order = json_decode($line, true);
        answer($order, static fn (): array => with_hold($locks, $hold ?? throw new LogicException('no hold'), $order));
    }
}

$opened = $holds = $workers = $pids = [];
// Until a worker is ready for it. (Not SIGUSR1, of which PHP has a handler of its own.)
pcntl_sigprocmask(SIG_BLOCK, [SIGALRM]);
while (($line = fgets(STDIN)) !== false) {
    $words = json_decode($line, true);
    switch ($words['do']) {
        case 'hello':
            $needs = ['read_write', 'permits', 'many', 'scope', 'cluster', 'fork', 'tight'];
            say(['id' => $words['id'], 'ok' => ['client' => 'php', 'needs' => $needs]]);
            break;
        case 'open':
            $opened[$words['locks']] = $words;
            say(['id' => $words['id'], 'ok' => (object) []]);
            break;
        case 'cancel':
            isset($pids[$words['acquire']]) && posix_kill($pids[$words['acquire']], SIGALRM);
            say(['id' => $words['id'], 'ok' => (object) []]);
            break;
        case 'acquire':
        case 'scope':
        case 'count':
            [$ours, $its] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            $pid = pcntl_fork();
            if ($pid === 0) {
                // Only the first process keeps the others'.
                foreach ($workers as $other) {
                    fclose($other);
                }
                fclose($ours);
                worker($words, $opened[$words['locks']], $its);
                exit(0);
            }
            fclose($its);
            $pids[$words['id']] = $pid;
            $workers[$words['id']] = $ours;
            if (isset($words['hold'])) {
                $holds[$words['hold']] = $ours;
            }
            break;
        default:
            $to = $holds[$words['hold'] ?? ''] ?? null;
            try {
                $to === null ? throw new LogicException("there is no {$words['do']}") : fwrite($to, $line);
            } catch (Throwable $e) {
                say(['id' => $words['id']] + failure($e));
            }
    }
}
foreach ($pids as $id => $pid) {
    fclose($workers[$id]);
    posix_kill($pid, SIGALRM);
}
foreach ($pids as $pid) {
    pcntl_waitpid($pid, $status);
}

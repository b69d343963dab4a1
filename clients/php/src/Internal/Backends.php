<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Backend;
use Rlock\Exception\RefusedException;

/**
 * @internal By what a server is spoken to. The calls themselves find out: the module's command is sent first,
 * "unknown command" leads on to the functions, and so on. So a server with the module costs no question.
 */
final class Backends
{
    /** The module may have been loaded since. */
    private const ASK_AGAIN = 60.0;

    private const NO_MODULE = 'the server has no rlock module: load librlock.so (loadmodule), see the README';
    private const NO_RIGHTS = 'the server has no rlock module, and this user may not FUNCTION LOAD or SCRIPT LOAD: '
        . 'an administrator runs redis-cli -x FUNCTION LOAD <rlock.lua, or gives the user +fcall +fcall_ro +function|load';

    private ?Backend $backend = null;
    /** By what the last call went, be its reply read or not: only that can have left something on the server. */
    private ?Backend $tried = null;
    private float $since = 0;
    private ?string $script = null;
    private ?string $sha = null;

    /**
     * @param Backend|null $required  anything else is refused
     * @param object|null  $logger    by PSR-3
     */
    public function __construct(
        private readonly ?Backend $required,
        private readonly bool $isCluster,
        private readonly ?object $logger,
    ) {
    }

    public function known(): ?Backend
    {
        return $this->backend;
    }

    public function isModule(): bool
    {
        return $this->backend === Backend::Module;
    }

    public function call(Connection $connection, Call $call, float $seconds): mixed
    {
        $end = Clock::monotonic() + $seconds;
        $backend = $this->backendToTry();
        while (true) {
            $left = max($end - Clock::monotonic(), 0.001);
            $this->tried = $backend;
            try {
                $reply = $connection->call($this->words($call, $backend), $left);
            } catch (ServerError $e) {
                $next = $this->after($e, $backend, Clock::monotonic() < $end, $connection, $left);
                if ($next !== null) {
                    $backend = $next;
                    continue;
                }
                if ($e->isLater()) {
                    throw $e;
                }
                // Any other answer shows that it is there.
                $this->found($backend);
                throw $e;
            }
            $this->found($backend);
            return $reply;
        }
    }

    /** The command that says it, as the last call went. */
    public function words(Call $call, ?Backend $backend = null): array
    {
        $backend ??= $this->tried ?? Backend::Module;
        return $call->words($backend, $backend === Backend::Script ? $this->sha() : '', $this->isCluster);
    }

    private function backendToTry(): Backend
    {
        if ($this->required !== null) {
            return $this->required;
        }
        $isOld = Clock::monotonic() - $this->since > self::ASK_AGAIN;
        return $this->backend === null || $isOld ? Backend::Module : $this->backend;
    }

    private function found(Backend $backend): void
    {
        if ($backend !== $this->backend) {
            $this->backend = $backend;
            $this->since = Clock::monotonic();
            if ($backend !== Backend::Module) {
                $this->logger?->info('rlock: the server has no rlock module, locks are made by its {backend}: without order '
                    . 'among those who begin to wait, instant hand-over, and deadlock detection', ['backend' => $backend->value]);
            }
        } elseif ($backend === Backend::Module || Clock::monotonic() - $this->since > self::ASK_AGAIN) {
            $this->since = Clock::monotonic();
        }
    }

    /** What is tried after an error; null: it is the answer. Somebody may flush what was loaded again and again. */
    private function after(ServerError $e, Backend $backend, bool $mayLoad, Connection $connection, float $seconds): ?Backend
    {
        if ($backend === Backend::Module && $e->isUnknownCommand()) {
            if ($this->required !== null) {
                throw new RefusedException('ERR', self::NO_MODULE);
            }
            return Backend::Functions;
        }
        if ($backend === Backend::Functions) {
            if ($mayLoad && stripos($e->text, 'Function not found') !== false) {
                return $this->loadFunctions($connection, $seconds);
            }
            if ($e->isUnknownCommand() || $e->forbids('fcall')) {
                return $this->script($e);
            }
        }
        if ($backend === Backend::Script) {
            if ($mayLoad && $e->word === 'NOSCRIPT') {
                return $this->loadScript($connection, $seconds);
            }
            if ($e->isUnknownCommand() || $e->forbids('evalsha')) {
                throw new RefusedException($e->isUnknownCommand() ? 'ERR' : 'NOPERM', self::NO_RIGHTS . " ({$e->text})");
            }
        }
        return null;
    }

    private function loadFunctions(Connection $connection, float $seconds): Backend
    {
        try {
            $connection->call(['FUNCTION', 'LOAD', self::text()], $seconds);
        } catch (ServerError $e) {
            if (stripos($e->text, 'already exists') !== false) {
                return Backend::Functions;
            }
            if ($e->isUnknownCommand() || $e->word === 'NOPERM') {
                return $this->script($e);
            }
            throw $e;
        }
        return Backend::Functions;
    }

    /** Unless the program wants the functions. */
    private function script(ServerError $e): Backend
    {
        return $this->required === null ? Backend::Script : throw $e->forProgram();
    }

    private function loadScript(Connection $connection, float $seconds): Backend
    {
        try {
            $connection->call(['SCRIPT', 'LOAD', $this->scriptText()], $seconds);
        } catch (ServerError $e) {
            if ($e->isUnknownCommand() || $e->word === 'NOPERM') {
                throw new RefusedException($e->word, self::NO_RIGHTS . " ({$e->text})");
            }
            throw $e;
        }
        return Backend::Script;
    }

    private static function text(): string
    {
        return file_get_contents(__DIR__ . '/../rlock.lua');
    }

    private function scriptText(): string
    {
        // Its first line names the library.
        return $this->script ??= explode("\n", self::text(), 2)[1];
    }

    private function sha(): string
    {
        return $this->sha ??= sha1($this->scriptText());
    }
}

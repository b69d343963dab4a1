<?php

declare(strict_types=1);

namespace Rlock\Tests\Support;

/** Signals that come all the time, whose handler throws once in whatever is run here. */
final class Storm
{
    private bool $isWanted = false;
    /** How often it threw. */
    public int $thrown = 0;
    /** How often that came through. */
    public int $seen = 0;
    private readonly int $sender;

    /** @param int $pause between two signals, in microseconds, at most */
    public function __construct(int $pause)
    {
        pcntl_async_signals(true);
        pcntl_signal(SIGUSR1, function (): void {
            if ($this->isWanted) {
                $this->isWanted = false;
                ++$this->thrown;
                throw new Interrupted();
            }
        });
        $me = getmypid();
        $this->sender = pcntl_fork();
        if ($this->sender === 0) {
            while (posix_getppid() === $me) {
                usleep(random_int(0, $pause));
                posix_kill($me, SIGUSR1);
            }
            posix_kill(getmypid(), SIGKILL);
        }
    }

    public function over(\Closure $body): void
    {
        try {
            $this->isWanted = true;
            $body();
            $this->isWanted = false;
        } catch (Interrupted) {
            ++$this->seen;
        }
    }

    public function end(): void
    {
        posix_kill($this->sender, SIGKILL);
        pcntl_waitpid($this->sender, $status);
    }
}

<?php

declare(strict_types=1);

namespace Rlock\Internal;

/**
 * @internal What there is of a hold on the server. It ends with the hold: also if the handler of a signal throws where
 * the hold's own destructor begins, which PHP then skips.
 */
final class Remainder
{
    /** Whether there is nothing any more. */
    public bool $isOver = false;
    private readonly int $pid;

    public function __construct(private readonly Engine $engine, private readonly Request $request)
    {
        $this->pid = getmypid();
    }

    public function __destruct()
    {
        $this->leave();
    }

    /** Releases it, and shows nothing. Not in a child of a fork, which holds nothing. */
    public function leave(): void
    {
        if ($this->isOver || $this->pid !== getmypid()) {
            return;
        }
        Signals::held(function (): void {
            $this->isOver = true;
            $this->engine->leave($this->request);
        });
    }
}

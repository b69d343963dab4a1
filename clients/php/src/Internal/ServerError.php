<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Exception\DeadlockException;
use Rlock\Exception\RefusedException;
use Rlock\Exception\RlockException;

/** @internal An error reply. */
final class ServerError extends \RuntimeException
{
    /** Such as mean "later, or elsewhere": this is no master now, or its cluster is not ready. */
    private const LATER = [
        'READONLY', 'MASTERDOWN', 'LOADING', 'UNBLOCKED', 'NOTYET', 'CLUSTERDOWN', 'TRYAGAIN', 'MOVED', 'ASK',
    ];

    /** The first word of the text. */
    public readonly string $word;
    public readonly string $text;

    public function __construct(string $text)
    {
        // What a server says to a command of more than ten words before AUTH.
        $isTooEarly = str_starts_with($text, 'ERR Protocol error: unauthenticated');
        $this->text = $isTooEarly ? 'NOAUTH Authentication required.' : $text;
        $this->word = strtok($this->text, ' ') ?: 'ERR';
        parent::__construct($this->text);
    }

    public function isLater(): bool
    {
        return in_array($this->word, self::LATER, true)
            || str_starts_with($this->text, 'ERR max number of clients reached');
    }

    public function isUnknownCommand(): bool
    {
        return stripos($this->text, 'unknown command') !== false;
    }

    /** Whether the user may not call this very command. */
    public function forbids(string $command): bool
    {
        return $this->word === 'NOPERM' && stripos($this->text, "'$command") !== false;
    }

    /** What the program gets. */
    public function forProgram(): RlockException
    {
        if ($this->word === 'DEADLOCK') {
            return new DeadlockException($this->text);
        }
        // So the library shows a missing right that it runs into.
        if (preg_match('/^ERR (ACL failure|The user executing)/', $this->text)) {
            return new RefusedException('NOPERM', $this->text);
        }
        return new RefusedException($this->word, $this->text);
    }
}

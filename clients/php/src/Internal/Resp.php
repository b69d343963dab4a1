<?php

declare(strict_types=1);

namespace Rlock\Internal;

/** @internal What goes over the wire: RESP2 and RESP3. */
final class Resp
{
    /** @param list<string> $command */
    public static function command(array $command): string
    {
        $text = '*' . count($command) . "\r\n";
        foreach ($command as $word) {
            $text .= '$' . strlen($word) . "\r\n$word\r\n";
        }
        return $text;
    }

    /**
     * A message for a whole push, whose fields are an array; else [the reply], a ServerError for an error.
     *
     * @param callable(): string    $line a line, without its end
     * @param callable(int): string $bytes so many, and the end of the line behind them
     */
    public static function read(callable $line, callable $bytes): Push|array
    {
        $head = $line();
        $rest = substr($head, 1);
        switch ($head[0] ?? '') {
            case ':':
                return [(int) $rest];
            case '+':
            case ',':
            case '(':
                return [$rest];
            case '-':
                return [new ServerError($rest)];
            case '_':
                return [null];
            case '#':
                return [$rest === 't'];
            case '!':
                return [new ServerError($bytes((int) $rest))];
            case '$':
                return [$rest === '-1' ? null : $bytes((int) $rest)];
            case '=':
                return [substr($bytes((int) $rest), 4)];
            case '*':
            case '~':
            case '>':
                $all = $rest === '-1' ? null : self::many((int) $rest, $line, $bytes);
                return $head[0] === '>' ? new Push($all) : [$all];
            case '%':
                // As in RESP2: names and values by turns.
                return [self::many(2 * (int) $rest, $line, $bytes)];
            case '|':
                self::many(2 * (int) $rest, $line, $bytes);
                return self::read($line, $bytes);
        }
        throw new Broken('the server sent what is no reply');
    }

    private static function many(int $count, callable $line, callable $bytes): array
    {
        $all = [];
        for (; $count > 0; --$count) {
            $all[] = self::read($line, $bytes)[0];
        }
        return $all;
    }
}

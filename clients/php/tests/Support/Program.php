<?php

declare(strict_types=1);

namespace Rlock\Tests\Support;

/** A program of tests/programs in a process of its own. */
final class Program
{
    /** @var resource */
    private $process;
    /** @var resource */
    private $output;
    /** @var resource */
    private $input;

    public function __construct(string $name, string|int ...$arguments)
    {
        $command = [PHP_BINARY, '-d', 'display_errors=stderr', __DIR__ . "/../programs/$name.php",
            ...array_map(strval(...), $arguments)];
        $this->process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes);
        [$this->input, $this->output] = $pipes;
    }

    /** Its next line. */
    public function line(float $seconds = 30): string
    {
        $ready = [$this->output];
        $none = [];
        if (stream_select($ready, $none, $none, (int) $seconds) !== 1 || ($line = fgets($this->output)) === false) {
            throw new \RuntimeException('the program says nothing more');
        }
        return rtrim($line);
    }

    public function say(string $line): void
    {
        fwrite($this->input, "$line\n");
    }

    public function kill(int $signal = SIGKILL): void
    {
        posix_kill(proc_get_status($this->process)['pid'], $signal);
    }

    /** The rest of its output, when it has ended. */
    public function rest(): string
    {
        fclose($this->input);
        $rest = stream_get_contents($this->output);
        proc_close($this->process);
        return trim($rest);
    }
}

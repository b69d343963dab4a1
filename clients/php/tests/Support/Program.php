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
    public function rest(float $seconds = 300): string
    {
        fclose($this->input);
        stream_set_blocking($this->output, false);
        $rest = '';
        for ($end = microtime(true) + $seconds; !feof($this->output);) {
            $left = $end - microtime(true);
            if ($left <= 0) {
                $this->kill();
                throw new \RuntimeException("the program has not ended in $seconds s, and said: $rest");
            }
            $ready = [$this->output];
            $none = [];
            stream_select($ready, $none, $none, (int) ceil($left));
            $rest .= fread($this->output, 65536);
        }
        proc_close($this->process);
        return trim($rest);
    }
}

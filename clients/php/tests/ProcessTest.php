<?php

declare(strict_types=1);

namespace Rlock\Tests;

use Illuminate\Cache\Lock as CacheLock;
use Rlock\Locks;
use Rlock\Tests\Support\BackendTestCase;
use Rlock\Tests\Support\Program;
use Rlock\Tests\Support\RealServer;
use Rlock\Tests\Support\Until;
use Symfony\Component\Lock\Key;

/** Whatever becomes of the process, nothing stays on the server. */
final class ProcessTest extends BackendTestCase
{
    /** @dataProvider backends */
    public function testAfterAForkTheChildHoldsNothing(string $backend): void
    {
        $program = new Program('fork', RealServer::shared($backend)->port, $this->key);
        $this->assertSame('child: fork, the hold of \'' . $this->key . '\' was lost: fork, has another lock', $program->line());
        $this->assertSame('parent: has it', $program->line());
        $this->assertSame('', $program->rest());
        $this->assertFalse($this->exists($backend));
    }

    /** @dataProvider ends */
    public function testHoweverAProgramEnds(string $backend, string $how): void
    {
        $program = new Program('end', RealServer::shared($backend)->port, $this->key, $how);
        $this->assertSame('has it', $program->line());
        $this->assertTrue($this->exists($backend));
        $program->say('go on');
        $program->rest();
        Until::true(fn (): bool => !$this->exists($backend), 'it is released');
    }

    public static function ends(): iterable
    {
        foreach (self::backends() as $backend => $_) {
            foreach (['end', 'exit', 'exception', 'memory', 'time'] as $how) {
                yield "$how, $backend" => [$backend, $how];
            }
        }
    }

    /** @dataProvider backends */
    public function testExitInASignalsHandlerAtAnyMoment(string $backend): void
    {
        for ($micros = 0; $micros < 6000; $micros += 400) {
            $program = new Program('leave', RealServer::shared($backend)->port, $this->key, (string) $micros);
            $this->assertSame('', $program->rest());
            $left = fn (): array => RealServer::shared($backend)->call('KEYS', "*{$this->key}*");
            Until::true(fn (): bool => array_filter($left(), fn ($key) => !str_contains($key, '_token:')) === [], "nothing is left after $micros us");
        }
    }

    /** @dataProvider backends */
    public function testAnExceptionOfASignalsHandlerEndsTheWait(string $backend): void
    {
        $locks = $this->locks($backend);
        $hold = $locks->acquire($this->key, lease: 60);
        pcntl_async_signals(true);
        pcntl_signal(SIGALRM, static fn () => throw new \DomainException('time is over'));
        pcntl_alarm(1);
        try {
            $locks->acquire($this->key, wait: 30);
            $this->fail('acquired');
        } catch (\DomainException $e) {
            $this->assertSame('time is over', $e->getMessage());
        } finally {
            pcntl_signal(SIGALRM, SIG_DFL);
        }
        $server = RealServer::shared($backend);
        if ($backend === 'module') {
            Until::true(fn (): bool => $server->call('RLOCK.INFO', $this->key)[5] === 0, 'nobody waits');
        }
        $hold->release();
        $this->assertFalse($this->exists($backend));
        $this->assertSame(0, $server->call('EXISTS', "rlock1_queue:{{$this->key}}"));
    }

    /** @dataProvider storms */
    public function testAnExceptionOfASignalsHandlerAtAnyMoment(string $backend, string $client): void
    {
        $needed = ['symfony' => Key::class, 'laravel' => CacheLock::class][$client] ?? self::class;
        class_exists($needed) || $this->markTestSkipped("$client is not installed");
        $program = new Program('storm', RealServer::shared($backend)->port, $this->key, $client);
        $this->assertSame('thrown, all seen, 0 left, waiting:', $program->rest(60));
    }

    public static function storms(): iterable
    {
        foreach (self::backends() as $backend => $_) {
            foreach (['phpredis', 'predis', 'own', 'symfony', 'laravel'] as $client) {
                yield "$client, $backend" => [$backend, $client];
            }
        }
    }

    /** Else no handler ends a wait after that. */
    public function testSignalsStayOnWhereAHandlerThrowsAsARequestBegins(): void
    {
        $program = new Program('begin', RealServer::shared('module')->port, $this->key);
        $this->assertSame('thrown, 0 times off', $program->rest(60));
    }

    /** PHP loses a signal that comes while phpredis makes an exception of an error. */
    public function testASignalWhileAnErrorIsOnItsWay(): void
    {
        $server = RealServer::start(false);
        $locks = new Locks($server->redis());
        $hold = $locks->acquire($this->key, lease: 60);
        $server->call('ACL', 'SETUSER', 'default', '-fcall');
        pcntl_async_signals(true);
        pcntl_signal(SIGUSR1, static fn () => throw new \DomainException('told to stop'));
        $server->pause();
        $me = getmypid();
        $child = pcntl_fork();
        if ($child === 0) {
            usleep(100_000);
            posix_kill($me, SIGUSR1);
            usleep(100_000);
            $server->goOn();
            posix_kill(getmypid(), SIGKILL);
        }
        try {
            $locks->tryAcquire($this->key, wait: 3);
            $this->fail('the signal was lost');
        } catch (\DomainException $e) {
            $this->assertSame('told to stop', $e->getMessage());
        } finally {
            pcntl_signal(SIGUSR1, SIG_DFL);
            pcntl_waitpid($child, $status);
        }
        $hold->release();
        $this->assertSame(0, $server->call('EXISTS', $this->key));
        $server->stop();
    }
}

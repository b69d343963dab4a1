package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// A server with the module, of its own for each test. RLOCK_SERVER and RLOCK_MODULE name others.
type server struct {
	t       testing.TB
	command *exec.Cmd
	port    int
	args    []string
	admin   *redis.Client
}

var ctx = context.Background()

func module() string {
	if path := os.Getenv("RLOCK_MODULE"); path != "" {
		return path
	}
	path, _ := filepath.Abs("../../target/release/librlock.so")
	return path
}

func binary() string {
	if path := os.Getenv("RLOCK_SERVER"); path != "" {
		return path
	}
	return "redis-server"
}

// Below the ports that the kernel gives to clients, so that a server that starts again finds its
// own free; and of those, some for each program of tests: the other clients' tests do it alike.
// The bus of a cluster has a port that is 10000 higher.
const firstPort, lastPort, blockOfPorts = 10_000, 20_000, 400

var given atomic.Int64

// Who listens on the first port of a block has it.
var ourPorts = sync.OnceValues(func() (int, net.Listener) {
	const blocks = (lastPort - firstPort) / blockOfPorts
	for n := range blocks {
		first := firstPort + (os.Getpid()+n)%blocks*blockOfPorts
		if guard, err := listen(first); err == nil {
			return first, guard
		}
	}
	panic("other tests have all ports")
})

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
}

// freePort gives one that nobody listens on now, and that no other program of tests is given while
// this one runs.
func freePort() int {
	first, _ := ourPorts()
	for range blockOfPorts {
		port := first + 1 + int(given.Add(1))%(blockOfPorts-1)
		if probe, err := listen(port); err == nil {
			probe.Close()
			return port
		}
	}
	panic("no free port")
}

func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	return startPlainServer(t, append([]string{"--loadmodule", module()}, args...)...)
}

// startPlainServer starts one without the module.
func startPlainServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, port: freePort()}
	s.args = append([]string{"--port", fmt.Sprint(s.port), "--save", "", "--dir", t.TempDir(),
		"--enable-debug-command", "yes"}, args...)
	s.admin = redis.NewClient(&redis.Options{Addr: s.addr(), MaxRetries: -1})
	s.start()
	t.Cleanup(func() {
		s.admin.Close()
		s.kill()
	})
	return s
}

func (s *server) addr() string { return fmt.Sprint("127.0.0.1:", s.port) }

func (s *server) start() {
	s.t.Helper()
	s.command = exec.Command(binary(), s.args...)
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		s.t.Fatal(err)
	}
	until(s.t, "the server to answer", func() bool { return s.admin.Ping(ctx).Err() == nil })
}

func (s *server) kill() {
	if s.command != nil {
		s.command.Process.Kill()
		s.command.Wait()
		s.command = nil
	}
}

func (s *server) signal(signal syscall.Signal) { s.command.Process.Signal(signal) }

func (s *server) do(words string) any {
	s.t.Helper()
	var all []any
	for _, word := range strings.Fields(words) {
		all = append(all, word)
	}
	reply, err := s.admin.Do(ctx, all...).Result()
	if err != nil && err != redis.Nil {
		s.t.Fatalf("%s: %v", words, err)
	}
	return reply
}

func (s *server) mode(key string) any {
	s.t.Helper()
	return s.do("RLOCK.INFO " + key).(map[any]any)["mode"]
}

func (s *server) waiters(key string) int {
	s.t.Helper()
	return len(s.do("RLOCK.WAITERS " + key).([]any))
}

func (s *server) free(key string) {
	s.t.Helper()
	until(s.t, key+" to be free", func() bool { return s.mode(key) == "free" })
}

func (s *server) waiting(key string, n int) {
	s.t.Helper()
	until(s.t, fmt.Sprint(n, " to wait for ", key), func() bool { return s.waiters(key) == n })
}

func (s *server) locks(settings ...rlock.Setting) *rlock.Locks {
	return locksAt(s.t, s.addr(), settings...)
}

func locksAt(t testing.TB, addr string, settings ...rlock.Setting) *rlock.Locks {
	client := redis.NewClient(&redis.Options{Addr: addr})
	locks := rlock.New(client, settings...)
	t.Cleanup(func() {
		locks.Close()
		client.Close()
	})
	return locks
}

func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatal("in vain waited for ", what)
}

func itoa(n int) string { return strconv.Itoa(n) }

func sprint(value any) string { return fmt.Sprint(value) }

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// soon is what comes from the channel.
func soon[T any](t testing.TB, what string, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(30 * time.Second):
		t.Fatal("in vain waited for ", what)
	}
	return
}

func isErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, and not: %v", err, want)
	}
}

type outcome struct {
	hold *rlock.Hold
	err  error
}

// later acquires in a goroutine.
func later(acquire func() (*rlock.Hold, error)) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		hold, err := acquire()
		done <- outcome{hold, err}
	}()
	return done
}

func lostWith(t testing.TB, hold *rlock.Hold, reason string) {
	t.Helper()
	soon(t, "the loss", hold.Lost())
	lost, ok := hold.Err().(*rlock.LostError)
	if !ok || lost.Reason != reason {
		t.Fatalf("%v, and not %s", hold.Err(), reason)
	}
	isErr(t, hold.Release(ctx), rlock.ErrLost)
}

package rlock_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// goroutines are those with a function of the package, or of its connections, in their stack.
func goroutines() int {
	stacks := make([]byte, 1<<22)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(stack, "clients/go.(*") {
			n++
		}
	}
	return n
}

func TestCloseLeavesNothing(t *testing.T) {
	s := startServer(t)
	client := redis.NewClient(&redis.Options{Addr: s.addr()})
	defer client.Close()
	before := runtime.NumGoroutine()
	locks := rlock.New(client)
	hold := must(locks.Lock(ctx, "watched"))
	plain := must(locks.Lock(ctx, "plain", rlock.NoWatchdog(), rlock.Lease(time.Minute)))
	other := must(locks.LockMany(ctx, []string{"a", "b"}, rlock.Max(time.Minute)))
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "watched") })
	s.waiting("watched", 1)
	waits, cancel := context.WithCancel(ctx)
	given := later(func() (*rlock.Hold, error) { return locks.Lock(waits, "watched") })
	s.waiting("watched", 2)
	cancel()
	soon(t, "the end of the wait", given)
	must(0, locks.Close())
	must(0, locks.Close())
	isErr(t, soon(t, "the end of the wait", wait).err, rlock.ErrClosed)
	for _, hold := range []*rlock.Hold{hold, plain, other} {
		lostWith(t, hold, "closed")
	}
	for _, key := range []string{"watched", "plain", "a", "b"} {
		if s.mode(key) != "free" {
			t.Error(key, " is held after Close")
		}
	}
	_, err := locks.Lock(ctx, "jobs")
	isErr(t, err, rlock.ErrClosed)
	until(t, "the goroutines to end", func() bool { return goroutines() == 0 })
	until(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

// It looks for a server to send the releases to, no longer than the time-out.
func TestCloseWithoutServer(t *testing.T) {
	s := startServer(t)
	locks := s.locks(rlock.Timeout(5 * time.Second))
	hold := must(locks.Lock(ctx, "jobs"))
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs") })
	s.waiting("jobs", 1)
	s.kill()
	lostWith(t, hold, "connection")
	began := time.Now()
	must(0, locks.Close())
	isErr(t, soon(t, "the end of the wait", wait).err, rlock.ErrClosed)
	if took := time.Since(began); took > 20*time.Second {
		t.Error("Close took ", took)
	}
	until(t, "the goroutines to end", func() bool { return goroutines() == 0 })
}

// Nobody connects before there is anything to do.
func TestUnused(t *testing.T) {
	locks := locksAt(t, "127.0.0.1:1")
	must(0, locks.Close())
	if n := goroutines(); n > 0 {
		t.Error(n, " goroutines")
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err := locks.Lock(over, "jobs")
	isErr(t, err, context.Canceled)
}

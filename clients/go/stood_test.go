package rlock_test

import (
	"context"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// A spoilt context panics, or ends its goroutine, when a method is called for the nth time.
type spoilt struct {
	context.Context
	method string
	left   int
	goexit bool
}

func (s *spoilt) spoil(method string) {
	if s.method != method {
		return
	}
	if s.left--; s.left != 0 {
		return
	}
	if s.goexit {
		runtime.Goexit()
	}
	panic("spoilt")
}

func (s *spoilt) Done() <-chan struct{} { s.spoil("Done"); return s.Context.Done() }
func (s *spoilt) Value(key any) any     { s.spoil("Value"); return s.Context.Value(key) }
func (s *spoilt) Err() error            { s.spoil("Err"); return s.Context.Err() }

// apart runs it in a goroutine that may panic or end.
func apart(t *testing.T, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { recover() }()
		do()
	}()
	soon(t, "the end of the goroutine", done)
}

func TestContextThatPanics(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	taken := must(locks.Lock(ctx, "taken"))
	for _, goexit := range []bool{false, true} {
		for _, method := range []string{"Done", "Value", "Err"} {
			for n := 1; n <= 4; n++ {
				job := locks.Job()
				for _, key := range []string{"jobs", "taken"} {
					until, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
					spoil := func() context.Context { return &spoilt{until, method, n, goexit} }
					apart(t, func() {
						if hold, err := locks.Lock(spoil(), key); err == nil {
							hold.Release(ctx)
						}
					})
					apart(t, func() {
						if hold, err := job.Lock(spoil(), key); err == nil {
							hold.Release(ctx)
						}
					})
					if method != "Done" || n > 2 {
						cancel()
						continue // from there on package context calls it, in a goroutine of its own
					}
					apart(t, func() {
						locks.Do(spoil(), key, func(context.Context, *rlock.Hold) error { return nil })
					})
					cancel()
				}
				must(0, must(job.Lock(ctx, "jobs", rlock.Wait(20*time.Second))).Release(ctx))
				s.free("jobs")
				s.waiting("taken", 0)
			}
		}
	}
	must(0, taken.Release(ctx))
	s.goesOn(locks, "jobs", "taken")
}

func TestLongestTimes(t *testing.T) {
	s := startServer(t)
	locks := s.locks(rlock.Timeout(10 * time.Second))
	for _, longest := range []time.Duration{math.MaxInt64, math.MaxInt64 - time.Microsecond, math.MaxInt64 / 2} {
		for _, opts := range [][]rlock.Option{{}, {rlock.NoWatchdog()}, {rlock.Max(longest)}} {
			hold := must(locks.Lock(ctx, "jobs", append(opts, rlock.Lease(longest))...))
			must(0, hold.Renew(ctx, longest))
			must(0, hold.Err())
			wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", rlock.Wait(longest)) })
			s.waiting("jobs", 1)
			time.Sleep(10 * time.Millisecond)
			must(0, hold.Release(ctx))
			must(0, soon(t, "the hold", wait).hold.Release(ctx))
		}
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		_, err := locks.Lock(short, "jobs", rlock.Acks(1, longest))
		isErr(t, err, context.DeadlineExceeded)
		cancel()
		s.free("jobs")
	}
}

func TestLeaseShorterThanAnAnswer(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	// A busy machine may not answer within 100 ms, and then the connection is lost; but it is not so slow each time.
	until(t, "a hold that stands", func() bool {
		hold := must(locks.Lock(ctx, "jobs"))
		for range 20 {
			if short, err := locks.Lock(ctx, "short", rlock.Lease(1)); err == nil {
				short.Release(ctx)
			} else {
				isErr(t, err, rlock.ErrLost) // before it was given
			}
		}
		hold.Renew(ctx, 1)
		time.Sleep(300 * time.Millisecond)
		if hold.Err() != nil {
			lostWith(t, hold, "connection")
			return false
		}
		err := hold.Release(ctx)
		return err == nil
	})
}

func TestOnConnectEndsItsGoroutine(t *testing.T) {
	s := startServer(t)
	client := redis.NewClient(&redis.Options{
		Addr:      s.addr(),
		OnConnect: func(context.Context, *redis.Conn) error { runtime.Goexit(); return nil },
	})
	locks := rlock.New(client, rlock.Timeout(300*time.Millisecond))
	connections := func() int { return strings.Count(sprint(s.do("CLIENT LIST")), "addr=") }
	before := connections()
	_, err := locks.TryLock(ctx, "jobs")
	isErr(t, err, rlock.ErrConnection)
	must(0, locks.Close())
	until(t, "no connection to be left", func() bool { return connections() <= before })
}

package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// The program's own code, wherever it runs and however it ends, and the session that goes on.

// goesOn looks that a new key can be acquired at once, the others as soon as a grant that crossed its
// cancel is released, and that nothing is left.
func (s *server) goesOn(locks *rlock.Locks, keys ...string) {
	s.t.Helper()
	must(0, must(locks.TryLock(ctx, "new")).Release(ctx))
	for _, key := range keys {
		hold, err := locks.Lock(ctx, key, rlock.Wait(20*time.Second))
		if err != nil {
			s.t.Fatal(err)
		}
		must(0, hold.Release(ctx))
	}
	until(s.t, "nothing to be left", func() bool { return s.do("DBSIZE") == int64(0) })
	for _, key := range keys {
		s.waiting(key, 0)
	}
}

// A counted context ends when it is asked for the n-th time, by whatever method, and calls
// into the Locks each time.
type counted struct {
	context.Context
	left   *atomic.Int64
	cancel context.CancelFunc
	call   func()
}

func newCounted(n int, call func()) *counted {
	c := &counted{left: new(atomic.Int64), call: call}
	c.left.Store(int64(n))
	c.Context, c.cancel = context.WithCancel(ctx)
	return c
}

func (c *counted) count() {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
	c.call()
}

func (c *counted) Done() <-chan struct{}       { c.count(); return c.Context.Done() }
func (c *counted) Err() error                  { c.count(); return c.Context.Err() }
func (c *counted) Value(key any) any           { c.count(); return c.Context.Value(key) }
func (c *counted) Deadline() (time.Time, bool) { c.count(); return c.Context.Deadline() }

func mayEnd(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, rlock.ErrLost) && !errors.Is(err, rlock.ErrRefused) {
		t.Error(err)
	}
}

var kinds = [][]rlock.Option{
	nil, {rlock.NoWatchdog()}, {rlock.Read()}, {rlock.Limit(2)}, {rlock.Acks(1, 2*time.Millisecond)},
}

// Each call of a context's methods may be the one at which it ends.
func TestContextEndsAtEachCall(t *testing.T) {
	s := startServer(t)
	locks, others := s.locks(), s.locks()
	probe := must(locks.Lock(ctx, "probe"))
	call := func() { probe.Err() } // which needs what all calls need
	for n := 1; n < 12; n++ {
		for _, opts := range kinds {
			blocker := must(others.Lock(ctx, "taken"))
			taken := newCounted(n, call)
			wait := later(func() (*rlock.Hold, error) { return locks.Lock(taken, "taken", opts...) })
			if hold, err := locks.Lock(newCounted(n, call), "free", opts...); err != nil {
				mayEnd(t, err)
			} else {
				mayEnd(t, hold.Renew(newCounted(n, call), time.Minute))
				mayEnd(t, hold.Release(newCounted(n, call)))
			}
			mayEnd(t, locks.Do(newCounted(n, call), "scope", func(context.Context, *rlock.Hold) error { return nil }, opts...))
			must(0, blocker.Release(ctx))
			taken.cancel()
			if got := soon(t, "the end of the wait", wait); got.err != nil {
				mayEnd(t, got.err)
			} else {
				must(0, got.hold.Release(ctx))
			}
		}
	}
	must(0, probe.Release(ctx))
	s.goesOn(locks, "free", "taken", "scope")
}

// Contexts that end at any time, hundreds of them at once.
func TestContextEndsAtAnyTime(t *testing.T) {
	s := startServer(t)
	before := runtime.NumGoroutine()
	client := redis.NewClient(&redis.Options{Addr: s.addr()})
	locks := rlock.New(client)
	job := locks.Job()
	var group sync.WaitGroup
	for i := range 400 {
		group.Go(func() {
			some := func() context.Context {
				some, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Duration(rand.Int64N(int64(3*time.Millisecond))), cancel)
				return some
			}
			key := fmt.Sprint("k", i%7)
			if hold, err := locks.Lock(some(), key, kinds[i%2]...); err == nil {
				mayEnd(t, hold.Renew(some(), time.Minute))
				mayEnd(t, hold.Release(some()))
			} else {
				mayEnd(t, err)
			}
			if hold, err := job.Lock(some(), fmt.Sprint("j", i)); err == nil {
				mayEnd(t, hold.Release(some()))
			}
			mayEnd(t, locks.Do(some(), key, func(ctx context.Context, _ *rlock.Hold) error { <-some().Done(); return nil }))
		})
	}
	group.Wait()
	s.goesOn(locks, "k0", "k1", "k2", "k3", "k4", "k5", "k6")
	must(0, locks.Close())
	client.Close()
	until(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

// A context of the program's own that is notified of a loss: by its Value, its Done, and what it
// gives to AfterFunc.
func TestLossRunsTheProgramsContexts(t *testing.T) {
	s := startServer(t)
	forever := make(chan struct{})
	defer close(forever)
	for name, deed := range map[string]func(locks *rlock.Locks, hold, other *rlock.Hold){
		"looks":    func(_ *rlock.Locks, hold, _ *rlock.Hold) { hold.Err() },
		"acquires": func(locks *rlock.Locks, _, _ *rlock.Hold) { must(0, must(locks.Lock(ctx, "deed")).Release(ctx)) },
		"waits":    func(locks *rlock.Locks, _, _ *rlock.Hold) { must(0, must(locks.Lock(ctx, "taken")).Release(ctx)) },
		"releases": func(_ *rlock.Locks, hold, other *rlock.Hold) { hold.Release(ctx); other.Release(ctx) },
		"renews":   func(_ *rlock.Locks, _, other *rlock.Hold) { other.Renew(ctx, time.Minute) },
		"blocks":   func(*rlock.Locks, *rlock.Hold, *rlock.Hold) { <-forever },
		"ends":     func(*rlock.Locks, *rlock.Hold, *rlock.Hold) { runtime.Goexit() },
		"closes":   func(locks *rlock.Locks, _, _ *rlock.Hold) { locks.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			locks := s.locks()
			taken := must(s.locks().Lock(ctx, "taken"))
			other := must(locks.Lock(ctx, "other"))
			began := make(chan *rlock.Hold, 1)
			done := make(chan struct{})
			own := &stopped{Context: ctx}
			ended := make(chan error, 1)
			go func() {
				ended <- locks.Do(own, "lost", func(ctx context.Context, hold *rlock.Hold) error {
					own.stop = func() { deed(locks, hold, other) }
					context.AfterFunc(ctx, func() { defer close(done); deed(locks, hold, other) })
					began <- hold
					<-hold.Lost()
					return nil
				})
			}()
			soon(t, "the body", began)
			s.do("RLOCK.FORCE lost")
			if name == "blocks" || name == "ends" {
				next := must(locks.TryLock(ctx, "lost"))
				must(0, next.Release(ctx))
			} else {
				until(t, "taken to be asked for", func() bool { return name != "waits" || s.waiters("taken") > 0 })
				must(0, taken.Release(ctx))
				soon(t, "the deed", done)
			}
			if name != "blocks" && name != "ends" { // for which Do itself has to wait
				isErr(t, soon(t, "the end of Do", ended), rlock.ErrLost)
			}
			other.Release(ctx)
			if taken.Release(ctx); name == "closes" {
				locks = s.locks()
			}
			s.goesOn(locks, "deed", "taken", "other", "lost")
		})
	}
}

// A stopped context has an AfterFunc of its own, whose stop is called by whoever cancels a
// context that comes from it.
type stopped struct {
	context.Context
	stop func()
}

func (s *stopped) Done() <-chan struct{} { return make(chan struct{}) }
func (s *stopped) AfterFunc(func()) (stop func() bool) {
	return func() bool { s.stop(); return true }
}

// Nobody reads the channels of the losses, or everybody at once.
func TestLostThatNobodyReads(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	for i := range 200 {
		must(locks.Lock(ctx, fmt.Sprint("k", i))).Lost()
	}
	s.do("CLIENT KILL TYPE pubsub")
	until(t, "all to be free", func() bool { return s.do("DBSIZE") == int64(0) })
	s.goesOn(locks, "k0")
}

// What forgets a hold may release it when it is collected.
func TestCleanupReleases(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	type work struct{ hold *rlock.Hold }
	for i := range 20 {
		one := &work{must(locks.Lock(ctx, fmt.Sprint("cleanup:", i)))}
		runtime.AddCleanup(one, func(hold *rlock.Hold) { hold.Release(ctx) }, one.hold)
		two := &work{must(locks.Lock(ctx, fmt.Sprint("finalizer:", i)))}
		runtime.SetFinalizer(two, func(w *work) { w.hold.Release(ctx) })
	}
	until(t, "all to be free", func() bool { runtime.GC(); return s.do("DBSIZE") == int64(0) })
	s.goesOn(locks, "cleanup:0")
}

// The connection is made with the program's Dialer and its OnConnect.
func TestProgramsCodeConnects(t *testing.T) {
	s := startServer(t)
	forever := make(chan struct{})
	defer close(forever)
	for name, deed := range map[string]func(ctx context.Context, locks *rlock.Locks) error{
		"blocks":   func(context.Context, *rlock.Locks) error { <-forever; return nil },
		"ends":     func(context.Context, *rlock.Locks) error { runtime.Goexit(); return nil },
		"fails":    func(context.Context, *rlock.Locks) error { return errors.New("own") },
		"acquires": func(ctx context.Context, locks *rlock.Locks) error { _, err := locks.Lock(ctx, "own"); return err },
		"closes":   func(_ context.Context, locks *rlock.Locks) error { return locks.Close() },
	} {
		for _, where := range []string{"dialer", "connect"} {
			t.Run(name+" "+where, func(t *testing.T) {
				var bad atomic.Bool
				var locks *rlock.Locks
				bad.Store(true)
				options := &redis.Options{Addr: s.addr()}
				if where == "dialer" {
					options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
						if bad.Load() {
							if err := deed(ctx, locks); err != nil {
								return nil, err
							}
						}
						return (&net.Dialer{}).DialContext(ctx, network, addr)
					}
				} else {
					options.OnConnect = func(ctx context.Context, _ *redis.Conn) error {
						if bad.Load() {
							return deed(ctx, locks)
						}
						return nil
					}
				}
				locks = rlock.New(redis.NewClient(options), rlock.Timeout(4*time.Second))
				_, err := locks.TryLock(ctx, "jobs")
				if name == "closes" {
					isErr(t, err, rlock.ErrClosed)
					return
				}
				isErr(t, err, rlock.ErrConnection)
				bad.Store(false)
				bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				must(0, must(locks.Lock(bounded, "jobs")).Release(ctx))
				s.goesOn(locks, "jobs")
				bad.Store(true)
				s.do("CLIENT KILL TYPE pubsub")
				wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs") })
				began := time.Now()
				must(0, locks.Close())
				isErr(t, soon(t, "the end", wait).err, rlock.ErrClosed)
				if took := time.Since(began); took > 20*time.Second {
					t.Error("Close took ", took)
				}
			})
		}
	}
}

// Close comes from many goroutines, at any time of everything else.
func TestCloseAtAnyTime(t *testing.T) {
	s := startServer(t)
	client := redis.NewClient(&redis.Options{Addr: s.addr()})
	defer client.Close()
	for i := range 60 {
		locks := rlock.New(client)
		var group sync.WaitGroup
		for n := range 8 {
			group.Go(func() {
				opts := append(kinds[n%3], rlock.Lease(time.Minute))
				if hold, err := locks.Lock(ctx, fmt.Sprint("k", n%5), opts...); err == nil {
					hold.Renew(ctx, time.Minute)
					hold.Release(ctx)
				}
			})
			group.Go(func() {
				time.Sleep(time.Duration(i*40) * time.Microsecond)
				must(0, locks.Close())
			})
		}
		group.Wait()
		if n := s.do("DBSIZE"); n != int64(0) {
			t.Fatal(n, " keys are left after Close")
		}
	}
	until(t, "the goroutines to end", func() bool { return goroutines() == 0 })
}

package rlock_test

import (
	"context"
	"errors"

	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// What goes wrong with a sticky lock, and what is never stuck.

var longLease = rlock.Lease(4 * time.Minute)

func nothing(*rlock.Use) error { return nil }

func asks(use *rlock.Use) error {
	_, err := use.Token(ctx)
	return err
}

func TestStickyTokenGetsNoReply(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	y := sticky(locksAt(t, p.Addr().String(), rlock.Timeout(5*time.Second)), longLease)
	ends, cancel := context.WithCancel(ctx)
	cancel()
	for _, c := range []struct {
		ctx context.Context
		is  error
	}{{ctx, rlock.ErrConnection}, {newCounted(3, func() {}), context.Canceled}} {
		uses(t, y)
		var token int64
		must(0, y.Use(ctx, func(use *rlock.Use) error { token = must(use.Token(ctx)); return nil }))
		u := begun(t, y)
		p.hold(true)
		if counted, is := c.ctx.(*counted); is {
			go func() { // when it waits
				until(t, "the question", func() bool { return counted.left.Load() <= 1 })
				counted.cancel()
			}()
		}
		_, err := u.use.Token(c.ctx)
		isErr(t, err, c.is)
		must(0, u.use.Err())
		p.hold(false)
		must(0, u.end(nil))
		must(0, y.Use(ctx, func(use *rlock.Use) error {
			if must(use.Token(ctx)) <= token || use.Owner == u.use.Owner {
				t.Error("the lock did not go back")
			}
			return nil
		}))
	}
	u := begun(t, y)
	_, err := u.use.Token(ends) // which asks for none
	isErr(t, err, context.Canceled)
	must(u.use.Token(ctx))
	must(0, u.end(nil))
}

func TestStickyByAnOlderModule(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	p.replaces("WANTED", "WANTET") // which it does not know
	y, last := sticky(locksAt(t, p.Addr().String())), ""
	for range 5 {
		owner := uses(t, y)
		if owner == last {
			t.Error("nobody would say that somebody waits")
		}
		last = owner
		s.free("jobs")
	}
	u := begun(t, y)
	next, begins := begins(t, y, ctx)
	other := startWaiter(s, s.locks())
	must(0, u.end(nil))
	other.ends()
	soon(t, "the next use", begins)
	must(0, next.end(nil))
}

func TestStickyWithoutTheModule(t *testing.T) {
	s := startPlainServer(t)
	y := sticky(s.locks())
	var last int64
	for range 5 {
		must(0, y.Use(ctx, func(use *rlock.Use) error {
			token := must(use.Token(ctx))
			if token <= last || must(use.Token(ctx)) != token {
				t.Error(token, " after ", last)
			}
			last = token
			return nil
		}))
		until(t, "it to be free", func() bool { return s.do("EXISTS jobs") == int64(0) })
	}
}

func TestStickyContextEnds(t *testing.T) {
	s := startServer(t)
	y, others := sticky(s.locks()), s.locks()
	other := must(others.Lock(ctx, "jobs"))
	waits, cancel := context.WithCancel(ctx)
	one, _ := begins(t, y, waits)
	two, begins := begins(t, y, ctx)
	s.waiting("jobs", 1)
	cancel()
	isErr(t, soon(t, "its end", one.done), context.Canceled)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	isErr(t, y.Use(short, nothing), context.DeadlineExceeded)
	isErr(t, y.Use(short, nothing), context.DeadlineExceeded)
	s.waiting("jobs", 1)
	must(0, other.Release(ctx))
	soon(t, "the other use", begins)
	must(0, two.end(nil))
	must(0, y.Close())
	// The last one that leaves takes the request along.
	other = must(others.Lock(ctx, "jobs"))
	y = sticky(s.locks(), rlock.Wait(20*time.Millisecond))
	isErr(t, y.Use(ctx, nothing), rlock.ErrNotAcquired)
	s.waiting("jobs", 0)
	y = sticky(s.locks(), rlock.Wait(0))
	isErr(t, y.Use(ctx, nothing), rlock.ErrNotAcquired)
	s.waiting("jobs", 0)
	must(0, other.Release(ctx))
	uses(t, y) // it does not wait for others, but for the server
}

// Each call of a context's methods may be the one at which it ends, panics or ends its goroutine.
func TestStickyAndTheProgramsContexts(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	y := sticky(locks)
	body := func(use *rlock.Use) error {
		use.Context()
		_, err := use.Token(use.Context())
		return err
	}
	for n := 1; n <= 6; n++ {
		for _, taken := range []bool{false, true} {
			if taken {
				must(0, y.Close())
				y = sticky(locks)
			}
			other := must(s.locks().Lock(ctx, "jobs"))
			if !taken {
				must(0, other.Release(ctx))
			}
			var group sync.WaitGroup
			for _, method := range []string{"Done", "Value", "Err"} {
				for _, goexit := range []bool{false, true} {
					group.Go(func() {
						short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
						defer cancel()
						if method == "Value" { // later package context calls it, in a goroutine of its own
							apart(t, func() { y.Use(&spoilt{short, method, n, goexit}, nothing) })
						} else {
							apart(t, func() { y.Use(&spoilt{short, method, n, goexit}, body) })
						}
					})
				}
			}
			group.Go(func() {
				short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				own := newCounted(n, func() { locks.Backend() })
				context.AfterFunc(short, own.cancel)
				mayEnd(t, y.Use(own, nothing))
			})
			group.Wait()
			if taken {
				must(0, other.Release(ctx))
			}
			uses(t, y)
		}
	}
	must(0, y.Close())
	s.goesOn(locks, "jobs")
}

func TestStickyIsClosed(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	y := sticky(locks)
	must(0, y.Close())
	isErr(t, y.Use(ctx, nothing), rlock.ErrClosed)
	y = sticky(locks)
	u := begun(t, y)
	waits, _ := begins(t, y, ctx)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { must(0, y.Close()) })
	}
	group.Wait()
	isErr(t, soon(t, "the end of the wait", waits.done), rlock.ErrClosed)
	must(0, u.use.Err())
	must(0, u.end(nil))
	s.free("jobs")
	y = sticky(locks)
	uses(t, y)
	for range 4 {
		group.Go(func() {
			must(0, y.Close())
			if s.mode("jobs") != "free" {
				t.Error("the server has not answered")
			}
		})
	}
	group.Wait()
	s.goesOn(locks, "jobs")

	y = sticky(locks)
	must(0, y.Use(ctx, asks))
	u = begun(t, y)
	must(u.use.Token(ctx)) // which is not that of the acquisition
	ends := u.use.Context()
	waits, _ = begins(t, y, ctx)
	from := p.piecesNow()
	must(0, locks.Close())
	p.mutex.Lock()
	if said := strings.Join(p.pieces[from:], ""); !strings.Contains(said, "RLOCK.RELEASE") || strings.Contains(said, "IFTOKEN") {
		t.Errorf("by which token? %q", said)
	}
	p.mutex.Unlock()
	isErr(t, soon(t, "the end of the wait", waits.done), rlock.ErrClosed)
	isErr(t, context.Cause(ends), rlock.ErrLost)
	isErr(t, u.end(nil), rlock.ErrLost)
	isErr(t, y.Use(ctx, nothing), rlock.ErrClosed)
	must(0, y.Close())
}

func TestStickyOverReconnects(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	y := sticky(locksAt(t, p.Addr().String()), rlock.Lease(6*time.Second))
	for range 3 {
		first := uses(t, y)
		p.closeThem()
		until(t, "it to be acquired anew", func() bool {
			owner := first
			if err := y.Use(ctx, func(use *rlock.Use) error { owner = use.Owner; return nil }); err != nil {
				isErr(t, err, rlock.ErrLost) // during that use
				return false
			}
			return owner != first
		})
		u := begun(t, y)
		p.closeThem()
		soon(t, "the loss", u.use.Lost())
		isErr(t, u.end(nil), rlock.ErrLost)
	}
	// A server that does not answer.
	u := begun(t, y)
	p.hold(true)
	time.Sleep(3100 * time.Millisecond) // more than half of the lease
	err := u.end(nil)
	p.hold(false)
	isErr(t, err, rlock.ErrLost)
	uses(t, y)
	s.kill()
	isErr(t, sticky(locksAt(t, s.addr(), rlock.Timeout(200*time.Millisecond)), rlock.Wait(1)).Use(ctx, nothing), rlock.ErrConnection)
	s.start()
	uses(t, y)
}

func TestStickyLeaseShorterThanAnAnswer(t *testing.T) {
	s := startServer(t)
	y := sticky(s.locks(), rlock.Lease(1))
	for range 20 {
		if err := y.Use(ctx, nothing); err != nil {
			isErr(t, err, rlock.ErrLost)
		}
	}
}

func TestStickyInACluster(t *testing.T) {
	c := startCluster(t)
	locks, others := c.locks(), c.locks()
	for _, key := range []string{"a", "b", "c"} {
		y := must(locks.Sticky(key))
		for range 3 {
			must(0, y.Use(ctx, nothing))
			must(0, must(others.Lock(ctx, key)).Release(ctx))
		}
		must(0, y.Close())
	}
}

// Everything at any time, by hundreds: afterwards nothing is stuck, and nothing is left.
func TestStickyAtAnyTime(t *testing.T) {
	s := startServer(t)
	client := redis.NewClient(&redis.Options{Addr: s.addr()})
	before := runtime.NumGoroutine()
	locks, others := rlock.New(client), s.locks()
	all := []*rlock.Sticky{sticky(locks), sticky(locks), must(locks.Sticky("other", rlock.Idle(1)))}
	counts := make([]int, len(all))
	some := func() context.Context {
		some, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Duration(rand.Int64N(int64(5*time.Millisecond))), cancel)
		return some
	}
	var group sync.WaitGroup
	for i := range 300 {
		group.Go(func() {
			y := i % len(all)
			for range 10 {
				switch rand.IntN(8) {
				case 0:
					apart(t, func() {
						all[y].Use(ctx, func(*rlock.Use) error { counts[y]++; panic("own") })
					})
				case 1:
					if hold, err := others.Lock(some(), "jobs"); err == nil {
						mayEnd(t, hold.Release(ctx))
					}
				case 2:
					mayEnd(t, all[y].Use(ctx, func(use *rlock.Use) error {
						counts[y]++
						_, err := use.Token(some())
						return err
					}))
				case 3:
					s.admin.Do(ctx, "RLOCK.FORCE", "jobs")
				default:
					mayEnd(t, all[y].Use(some(), func(use *rlock.Use) error {
						counts[y]++
						use.Context()
						return nil
					}))
				}
			}
		})
	}
	group.Wait()
	for _, y := range all {
		must(0, y.Use(ctx, nothing))
	}
	for range 20 {
		group.Go(func() {
			for _, y := range all {
				for range 50 {
					if err := y.Use(ctx, nothing); err != nil && !errors.Is(err, rlock.ErrClosed) {
						isErr(t, err, rlock.ErrLost)
					}
				}
			}
		})
	}
	must(0, locks.Close())
	group.Wait()
	client.Close()
	until(t, "nothing to be left", func() bool { return s.do("DBSIZE") == int64(0) })
	others.Close()
	until(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

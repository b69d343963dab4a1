package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rlock "rlock.invalid/clients/go"
)

// A lock that stays with the process between its uses.

func sticky(locks *rlock.Locks, opts ...rlock.Option) *rlock.Sticky {
	return must(locks.Sticky("jobs", opts...))
}

// uses it once, and gives the owner.
func uses(t testing.TB, y *rlock.Sticky) (owner string) {
	t.Helper()
	must(0, y.Use(ctx, func(use *rlock.Use) error { owner = use.Owner; return nil }))
	return owner
}

// A stickyUse goes on in its goroutine until it is told to end.
type stickyUse struct {
	t    testing.TB
	use  *rlock.Use
	ends chan error
	done <-chan error
}

// begins has one begin, or wait, in a goroutine of its own.
func begins(t testing.TB, y *rlock.Sticky, ctx context.Context) (*stickyUse, <-chan struct{}) {
	begun, done := make(chan struct{}), make(chan error, 1)
	u := &stickyUse{t: t, ends: make(chan error), done: done}
	go func() {
		done <- y.Use(ctx, func(use *rlock.Use) error {
			u.use = use
			close(begun)
			return <-u.ends
		})
	}()
	return u, begun
}

func begun(t testing.TB, y *rlock.Sticky) *stickyUse {
	t.Helper()
	u, begun := begins(t, y, ctx)
	soon(t, "the use", begun)
	return u
}

func (u *stickyUse) end(err error) error {
	u.t.Helper()
	u.ends <- err
	return soon(u.t, "the end of the use", u.done)
}

func TestStickyArguments(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	for _, c := range []struct {
		key  string
		opts []rlock.Option
	}{
		{"", nil}, {"jobs", []rlock.Option{rlock.Idle(0)}}, {"jobs", []rlock.Option{rlock.Idle(2 * time.Second)}},
		{"jobs", []rlock.Option{rlock.Wait(-1)}}, {"jobs", []rlock.Option{rlock.Lease(0)}}, {"jobs", []rlock.Option{rlock.Read()}},
		{"jobs", []rlock.Option{rlock.Limit(2)}}, {"jobs", []rlock.Option{rlock.NoWatchdog()}}, {"jobs", []rlock.Option{rlock.Least(1)}},
		{"jobs", []rlock.Option{rlock.Max(time.Second)}}, {"jobs", []rlock.Option{rlock.Acks(1, time.Second)}},
	} {
		_, err := locks.Sticky(c.key, c.opts...)
		isErr(t, err, rlock.ErrArgument)
	}
	_, err := locks.Lock(ctx, "jobs", rlock.Idle(time.Second))
	isErr(t, err, rlock.ErrArgument)
	hold := must(locks.Lock(ctx, "other"))
	_, err = hold.GiveWay(ctx, rlock.Idle(time.Second))
	isErr(t, err, rlock.ErrArgument)
	if n := s.do("EXISTS jobs"); n != int64(0) {
		t.Error("it was acquired")
	}
	must(locks.Sticky("jobs", rlock.Idle(1), rlock.Wait(0), rlock.Lease(time.Minute)))
}

func TestStickyCostsNoMessage(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	y := sticky(locksAt(t, p.Addr().String()))
	until(t, "a thousand uses of one acquisition", func() bool {
		uses(t, y)
		from, owner := p.piecesNow(), uses(t, y)
		for range 1000 {
			if uses(t, y) != owner {
				return false // the second was over
			}
		}
		return len(p.commands(from)) == 0
	})
	s.free("jobs") // when it was idle
	uses(t, y)
	must(0, y.Close())
	if s.mode("jobs") != "free" {
		t.Error("it was closed")
	}
}

func TestStickyBodies(t *testing.T) {
	s := startServer(t)
	y := sticky(s.locks())
	own := errors.New("own")
	for name, body := range map[string]func(){
		"panics": func() { y.Use(ctx, func(*rlock.Use) error { panic("own") }) },
		"exits":  func() { y.Use(ctx, func(*rlock.Use) error { runtime.Goexit(); return nil }) },
		"panics in its context": func() {
			y.Use(ctx, func(use *rlock.Use) error { use.Context(); panic("own") })
		},
		"fails": func() { isErr(t, y.Use(ctx, func(*rlock.Use) error { return own }), own) },
	} {
		apart(t, body)
		u := begun(t, y)
		waits, begins := begins(t, y, ctx)
		must(0, u.end(nil))
		soon(t, name+": the next use", begins)
		must(0, waits.end(nil))
	}
	u := begun(t, y)
	s.do("RLOCK.FORCE jobs")
	soon(t, "the loss", u.use.Lost())
	err := u.end(own)
	isErr(t, err, own)
	isErr(t, err, rlock.ErrLost)
	uses(t, y)
}

func TestStickyIsLost(t *testing.T) {
	s := startServer(t)
	y := sticky(s.locks())
	first := begun(t, y)
	ends := first.use.Context()
	second, secondBegins := begins(t, y, ctx)
	s.do("RLOCK.FORCE jobs")
	soon(t, "the end of the context", ends.Done())
	isErr(t, context.Cause(ends), rlock.ErrLost)
	isErr(t, context.Cause(first.use.Context()), rlock.ErrLost)
	isErr(t, first.use.Err(), rlock.ErrLost)
	soon(t, "the loss", first.use.Lost())
	_, err := first.use.Token(ctx)
	isErr(t, err, rlock.ErrLost)

	other := must(s.locks().Lock(ctx, "jobs"))
	select {
	case <-secondBegins:
		t.Error("two uses of the process at once")
	case <-time.After(50 * time.Millisecond):
	}
	isErr(t, first.end(nil), rlock.ErrLost)
	s.waiting("jobs", 1)
	must(0, other.Release(ctx))
	soon(t, "the second use", secondBegins)
	token := must(second.use.Token(ctx))
	if token <= other.Token || second.use.Owner == first.use.Owner {
		t.Error("it was not acquired anew")
	}
	must(0, second.use.Err())
	must(0, second.end(nil))

	// A context that is asked for when it is lost already, and when the use is over.
	late := begun(t, y)
	s.do("RLOCK.FORCE jobs")
	soon(t, "the loss", late.use.Lost())
	isErr(t, context.Cause(late.use.Context()), rlock.ErrLost)
	isErr(t, late.end(nil), rlock.ErrLost)
	over := begun(t, y)
	must(0, over.end(nil))
	isErr(t, context.Cause(over.use.Context()), context.Canceled)
	_, err = over.use.Token(ctx)
	isErr(t, err, rlock.ErrArgument)
}

func TestStickyWithin(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	y, z := sticky(locks, rlock.Wait(50*time.Millisecond)), must(locks.Sticky("other"))
	nothing := func(*rlock.Use) error { return nil }
	must(0, y.Use(ctx, func(outer *rlock.Use) error {
		must(0, z.Use(outer.Context(), func(inner *rlock.Use) error {
			err := y.Use(inner.Context(), nothing)
			if err == nil || errors.Is(err, rlock.ErrNotAcquired) {
				t.Error(err)
			}
			return nil
		}))
		err := y.Use(ctx, nothing)
		isErr(t, err, rlock.ErrNotAcquired)
		if held := err.(*rlock.NotAcquiredError); held.HeldBy != outer.Owner || held.Key != "jobs" {
			t.Error(held)
		}
		return outer.Err()
	}))
	// What a use has left behind is no use within it.
	var after context.Context
	must(0, y.Use(ctx, func(use *rlock.Use) error { after = context.WithoutCancel(use.Context()); return nil }))
	must(0, y.Use(after, nothing))
}

func TestStickyTokens(t *testing.T) {
	s := startServer(t)
	y := sticky(s.locks())
	last := int64(0)
	for range 300 {
		must(0, y.Use(ctx, func(use *rlock.Use) error {
			token := must(use.Token(ctx))
			if token <= last || must(use.Token(ctx)) != token {
				t.Fatal(token, " after ", last)
			}
			last = token
			return nil
		}))
	}
	u := begun(t, y)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { must(u.use.Token(ctx)) })
	}
	group.Wait()
	if token := must(u.use.Token(ctx)); token <= last || s.holders("jobs")[0].(map[any]any)["token"] != token {
		t.Error("it is not the newest: ", token)
	}
	must(0, u.end(nil))
}

// Who polls each ms gets it too, though the uses never end, and nobody says that he waits.
func TestStickyIsFairToWhoPolls(t *testing.T) {
	s := startServer(t)
	y, others := sticky(s.locks()), s.locks()
	var n atomic.Int64
	var group sync.WaitGroup
	ends, end := context.WithCancel(ctx)
	for range 2 {
		group.Go(func() {
			for ends.Err() == nil {
				uses(t, y)
				n.Add(1)
			}
		})
	}
	for range 3 {
		before := n.Load()
		until(t, "some uses", func() bool { return n.Load() > before+100 })
		until(t, "the lock by polling", func() bool {
			hold, err := others.TryLock(ctx, "jobs")
			if err != nil {
				isErr(t, err, rlock.ErrNotAcquired)
				return false
			}
			must(0, hold.Release(ctx))
			return true
		})
	}
	end()
	group.Wait()
}

func TestStickyGoesToWhoWaits(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	y := sticky(locks)
	for _, others := range []*rlock.Locks{s.locks(), locks} {
		uses(t, y)
		must(0, must(others.Lock(ctx, "jobs")).Release(ctx)) // though it is idle
		u := begun(t, y)
		next, begins := begins(t, y, ctx)
		other := startWaiter(s, others)
		time.Sleep(20 * time.Millisecond) // so long it stays for those who wait here
		must(0, u.end(nil))
		got := soon(t, "the lock", other.done)
		must(0, got.err)
		s.waiting("jobs", 1)
		must(0, got.hold.Release(ctx))
		soon(t, "the next use", begins)
		must(0, next.end(nil))
	}
}

func TestStickyCountsExactly(t *testing.T) {
	s := startServer(t)
	y, n := sticky(s.locks()), 0 // the uses of one process need nothing else
	var group sync.WaitGroup
	for range 40 {
		group.Go(func() {
			for range 250 {
				must(0, y.Use(ctx, func(*rlock.Use) error { n++; return nil }))
			}
		})
	}
	group.Wait()
	if n != 10_000 {
		t.Error(n)
	}
	t.Run("in several processes", func(t *testing.T) { s.countsExactly(t) })
}

func (s *server) countsExactly(t *testing.T) {
	one, two, third := sticky(s.locks()), sticky(s.locks()), s.locks()
	var group sync.WaitGroup
	counts := func(times int, by func(func(*rlock.Use) error) error) {
		for range 4 {
			group.Go(func() {
				for range times {
					must(0, by(func(*rlock.Use) error {
						must(0, s.admin.Set(ctx, "n", must(s.admin.Get(ctx, "n").Int())+1, 0).Err())
						return nil
					}))
				}
			})
		}
	}
	s.do("SET n 0")
	counts(100, func(add func(*rlock.Use) error) error { return one.Use(ctx, add) })
	counts(100, func(add func(*rlock.Use) error) error { return two.Use(ctx, add) })
	counts(50, func(add func(*rlock.Use) error) error {
		return third.Do(ctx, "jobs", func(context.Context, *rlock.Hold) error { return add(nil) })
	})
	group.Wait()
	if n := s.do("GET n"); n != "1000" {
		t.Error(n)
	}
	s.do("DEL n")
}

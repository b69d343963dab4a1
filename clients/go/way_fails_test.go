package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	rlock "rlock.invalid/clients/go"
)

// A hold gives way in vain, or may not.

func (w *way) fails() error {
	w.s.t.Helper()
	err := soon(w.s.t, "its end", w.done)
	if err == nil {
		w.s.t.Fatal("it holds again")
	}
	return err
}

// isOver says that it has failed: the hold is over, and nothing of it is left.
func (w *way) isOver(reason string) {
	t := w.s.t
	t.Helper()
	w.s.waiting("jobs", 0)
	soon(t, "the news", w.hold.Lost())
	var lost *rlock.LostError
	if err := w.hold.Err(); !errors.As(err, &lost) || lost.Reason != reason {
		t.Errorf("%v, and not %s", err, reason)
	}
	if w.hold.Wanted() {
		t.Error("it is wanted")
	}
	_, err := w.hold.GiveWay(ctx)
	for _, err := range []error{err, w.hold.Again(), w.hold.Renew(ctx, time.Minute)} {
		isErr(t, err, rlock.ErrLost)
	}
	must(0, w.hold.Release(ctx))
	must(0, w.hold.Release(ctx))
	must(0, w.between.Err())
	must(0, w.between.Release(ctx))
	w.s.free("jobs")
}

func TestMayNotGiveWay(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	many, hold := must(locks.LockMany(ctx, []string{"a", "b"})), must(locks.Lock(ctx, "jobs"))
	must(0, hold.Again())
	w := startWaiter(s, s.locks())
	isWanted(t, hold)
	from := p.piecesNow()
	for _, one := range []*rlock.Hold{many, hold} {
		_, err := one.GiveWay(ctx, anyAge)
		isErr(t, err, rlock.ErrArgument)
	}
	for _, bad := range []rlock.Option{rlock.Wait(-1), rlock.Least(-1), rlock.Read(), rlock.Lease(time.Second), rlock.NoWatchdog()} {
		_, err := hold.GiveWay(ctx, bad)
		isErr(t, err, rlock.ErrArgument)
	}
	_, err := locks.Lock(ctx, "more", anyAge)
	isErr(t, err, rlock.ErrArgument)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = hold.GiveWay(canceled, anyAge)
	isErr(t, err, context.Canceled)
	must(0, hold.Err())
	must(0, many.Err())
	if said := p.commands(from); len(said) > 0 {
		t.Error("it said ", said)
	}
	must(0, hold.Release(ctx))
	giveWayTo(w, ctx, hold).comesBack()
	must(0, hold.Release(ctx))
	_, err = hold.GiveWay(ctx)
	isErr(t, err, rlock.ErrArgument) // as each use of what was released
	gone := must(locks.Lock(ctx, "gone"))
	s.do("RLOCK.FORCE gone")
	soon(t, "the loss", gone.Lost())
	_, err = gone.GiveWay(ctx)
	isErr(t, err, rlock.ErrLost)
}

func TestGiveWayInVain(t *testing.T) {
	s := startServer(t)
	locks, others := s.locks(), s.locks()
	ends := map[string]func(hold *rlock.Hold, w *waiter) (*way, error){
		"its time is over": func(hold *rlock.Hold, w *waiter) (*way, error) {
			return giveWayTo(w, ctx, hold, rlock.Wait(300*time.Millisecond)), rlock.ErrNotAcquired
		},
		"its context is": func(hold *rlock.Hold, w *waiter) (*way, error) {
			short, cancel := context.WithCancel(ctx)
			way := giveWayTo(w, short, hold).waits()
			cancel()
			return way, context.Canceled
		},
		"it is released": func(hold *rlock.Hold, w *waiter) (*way, error) {
			way := giveWayTo(w, ctx, hold).waits()
			must(0, hold.Release(ctx))
			return way, rlock.ErrLost
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			way, want := end(must(locks.Lock(ctx, "jobs")), startWaiter(s, others))
			isErr(t, way.fails(), want)
			way.isOver("released")
		})
		t.Run(name+", in a scope", func(t *testing.T) {
			var way *way
			enough := errors.New("enough")
			err := locks.Do(ctx, "jobs", func(work context.Context, hold *rlock.Hold) error {
				var want error
				way, want = end(hold, startWaiter(s, others))
				isErr(t, way.fails(), want)
				soon(t, "the end of the work", work.Done())
				return enough
			})
			if err != enough {
				t.Error(err)
			}
			way.isOver("released")
		})
	}
	t.Run("they are closed", func(t *testing.T) {
		locks := s.locks()
		hold := must(locks.Lock(ctx, "jobs"))
		way := giveWayTo(startWaiter(s, others), ctx, hold).waits()
		must(0, locks.Close())
		isErr(t, way.fails(), rlock.ErrClosed)
		way.isOver("released")
	})
}

func TestGiveWayForEver(t *testing.T) {
	s := startServer(t)
	job, against := s.locks().Job(), s.locks().Job()
	other, hold := must(job.Lock(ctx, "other")), must(job.Lock(ctx, "jobs"))
	w := &waiter{s: s, done: later(func() (*rlock.Hold, error) { return against.Lock(ctx, "jobs") })}
	s.waiting("jobs", 1)
	more := later(func() (*rlock.Hold, error) { return against.Lock(ctx, "other") })
	s.waiting("other", 1)
	way := giveWayTo(w, ctx, hold)
	isErr(t, way.fails(), rlock.ErrDeadlock)
	must(0, other.Err())
	must(0, other.Release(ctx))
	must(0, soon(t, "the other lock", more).hold.Release(ctx))
	way.isOver("released")
	must(0, must(job.Lock(ctx, "jobs")).Release(ctx))
}

func TestGiveWayWithoutTheRight(t *testing.T) {
	s := startServer(t)
	locks, others := s.locksOf("~* &* +@all"), s.locks()
	for _, command := range []string{"acquire", "release"} {
		for _, job := range []*rlock.Job{nil, locks.Job()} {
			lock := locks.Lock
			if job != nil {
				lock = job.Lock
			}
			hold, w := must(lock(ctx, "jobs")), startWaiter(s, others)
			isWanted(t, hold)
			s.do("ACL SETUSER ann -rlock." + command)
			_, err := hold.GiveWay(ctx, anyAge)
			isErr(t, err, rlock.ErrRefused)
			if command == "release" {
				s.waiting("jobs", 1) // what was asked for is cancelled
				if s.mode("jobs") == "free" {
					t.Error("it is free")
				}
			}
			s.do("ACL SETUSER ann +rlock." + command)
			got := soon(t, "the lock", w.done)
			must(0, got.err)
			(&way{s: s, hold: hold, between: got.hold}).isOver("released")
			if job != nil {
				must(0, must(lock(ctx, "jobs")).Release(ctx))
			}
		}
	}
}

func TestGiveWayThatWasLost(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks, others := locksAt(t, p.Addr().String()), s.locks()
	for _, quick := range []bool{false, true} {
		hold, w := must(locks.Lock(ctx, "jobs", rlock.Lease(time.Minute))), startWaiter(s, others)
		isWanted(t, hold)
		p.hold(true)
		s.do("RLOCK.FORCE jobs")
		way := giveWayAfter(w, hold)
		way.waits()
		if quick { // so that it is granted before it learns of the loss
			must(0, way.between.Release(ctx))
			s.waiting("jobs", 0)
		}
		p.hold(false)
		isErr(t, way.fails(), rlock.ErrLost)
		if quick {
			s.free("jobs")
			way.between = must(others.Lock(ctx, "jobs"))
		}
		way.isOver("forced")
	}
}

// giveWayAfter is giveWayTo who has the lock already.
func giveWayAfter(w *waiter, hold *rlock.Hold) *way {
	w.s.t.Helper()
	got := soon(w.s.t, "the lock", w.done)
	must(0, got.err)
	done := make(chan error, 1)
	go func() {
		_, err := hold.GiveWay(ctx, anyAge)
		done <- err
	}()
	return &way{w.s, hold, got.hold, done}
}

func TestGiveWayWithoutAConnection(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String(), rlock.Timeout(5*time.Second))
	hold, w := must(locks.Lock(ctx, "jobs", plainMinute...)), startWaiter(s, s.locks())
	isWanted(t, hold)
	p.mutex.Lock()
	p.server = "127.0.0.1:1" // where nobody listens
	p.mutex.Unlock()
	p.closeThem()
	_, err := hold.GiveWay(ctx, anyAge, rlock.Wait(500*time.Millisecond))
	isErr(t, err, rlock.ErrConnection)
	p.mutex.Lock()
	p.server = s.addr() // and what is left to say is said there
	p.mutex.Unlock()
	got := soon(t, "the lock", w.done)
	must(0, got.err)
	(&way{s: s, hold: hold, between: got.hold}).isOver("released")
}

func TestReleaseWhileItGivesWay(t *testing.T) {
	s := startServer(t)
	locks, others := s.locks(), s.locks()
	for n := range 30 {
		hold := must(locks.Lock(ctx, "jobs"))
		way := giveWayTo(startWaiter(s, others), ctx, hold)
		must(0, way.between.Release(ctx))
		time.Sleep(time.Duration(n) * 20 * time.Microsecond) // in whichever moment
		must(0, hold.Release(ctx))
		if err := soon(t, "its end", way.done); err != nil {
			isErr(t, err, rlock.ErrLost)
		}
		s.free("jobs")
	}
}

package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	rlock "rlock.invalid/clients/go"
)

func TestAcquireAndRelease(t *testing.T) {
	s := startServer(t)
	locks, other := s.locks(), s.locks()
	hold := must(locks.TryLock(ctx, "jobs"))
	_, err := other.TryLock(ctx, "jobs")
	isErr(t, err, rlock.ErrNotAcquired)
	_, err = locks.TryLock(ctx, "jobs")
	isErr(t, err, rlock.ErrNotAcquired)
	_, err = other.Lock(ctx, "jobs", rlock.Wait(20*time.Millisecond))
	isErr(t, err, rlock.ErrNotAcquired)
	if err := errors.Join(hold.Err(), hold.Release(ctx), hold.Release(ctx), hold.Err()); err != nil {
		t.Fatal(err)
	}
	if s.mode("jobs") != "free" {
		t.Fatal("Release came back before the lock was free")
	}
	next := must(other.TryLock(ctx, "jobs"))
	if next.Token <= hold.Token || next.Owner == hold.Owner {
		t.Fatalf("after %+v came %+v", hold, next)
	}
}

func TestWaitInOrder(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	first := must(locks.Lock(ctx, "jobs"))
	var waits []<-chan outcome
	for i := range 5 {
		waits = append(waits, later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", rlock.Wait(time.Minute)) }))
		s.waiting("jobs", i+1)
	}
	last := first
	for _, wait := range waits {
		if err := last.Release(ctx); err != nil {
			t.Fatal(err)
		}
		got := soon(t, "the grant", wait)
		if got.err != nil || got.hold.Token <= last.Token {
			t.Fatal(got.err, got.hold, last)
		}
		last = got.hold
	}
}

func TestModes(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	one := must(locks.TryLock(ctx, "rw", rlock.Read()))
	two := must(locks.TryLock(ctx, "rw", rlock.Read()))
	writer := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "rw", rlock.Write()) })
	s.waiting("rw", 1)
	must(0, one.Release(ctx))
	must(0, two.Release(ctx))
	must(0, soon(t, "the writer", writer).hold.Release(ctx))

	three := must(locks.TryLock(ctx, "gpu", rlock.Limit(4), rlock.Permits(3)))
	_, err := locks.TryLock(ctx, "gpu", rlock.Limit(4), rlock.Permits(2))
	isErr(t, err, rlock.ErrNotAcquired)
	last := must(locks.TryLock(ctx, "gpu", rlock.Limit(4)))
	_, err = locks.TryLock(ctx, "gpu", rlock.Limit(5))
	var refused *rlock.RefusedError
	if !errors.As(err, &refused) || refused.Code != "WRONGLIMIT" {
		t.Fatal(err)
	}
	must(0, three.Renew(ctx, time.Minute))
	must(0, three.Release(ctx))
	must(0, last.Release(ctx))
	s.free("gpu")
	s.free("rw")
}

func TestManyKeys(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	keys := []string{"a", "b", "c"}
	hold := must(locks.LockMany(ctx, keys))
	if fmt.Sprint(hold.Keys()) != "[a b c]" || hold.Key != "a" {
		t.Fatal(hold.Keys())
	}
	_, err := locks.TryLock(ctx, "b")
	isErr(t, err, rlock.ErrNotAcquired)
	wait := later(func() (*rlock.Hold, error) { return locks.LockMany(ctx, []string{"c", "d"}) })
	s.waiting("c", 1)
	must(0, hold.Renew(ctx, time.Minute))
	must(0, hold.Release(ctx))
	second := soon(t, "the second", wait).hold
	s.do("RLOCK.FORCE c")
	lostWith(t, second, "forced")
	for _, key := range []string{"a", "b", "c", "d"} {
		s.free(key)
	}
}

func TestArguments(t *testing.T) {
	locks := locksAt(t, "127.0.0.1:1")
	for _, opts := range [][]rlock.Option{
		{rlock.Read(), rlock.Write()}, {rlock.Limit(0)}, {rlock.Permits(1)}, {rlock.Limit(2), rlock.Permits(3)},
		{rlock.Lease(0)}, {rlock.Lease(-time.Second)}, {rlock.Wait(-1)}, {rlock.Max(0)}, {rlock.Acks(0, time.Second)},
		{rlock.Max(time.Second), rlock.NoWatchdog()}, {rlock.Limit(2), rlock.Permits(0)},
	} {
		_, err := locks.Lock(ctx, "jobs", opts...)
		isErr(t, err, rlock.ErrArgument)
	}
	for _, keys := range [][]string{nil, {"a", "a"}, make([]string, 1025)} {
		_, err := locks.LockMany(ctx, keys)
		isErr(t, err, rlock.ErrArgument)
	}
	_, err := locks.LockMany(ctx, []string{"a", "b"}, rlock.Read())
	isErr(t, err, rlock.ErrArgument)
	_, err = locks.TryLock(ctx, "jobs", rlock.Wait(time.Second))
	isErr(t, err, rlock.ErrArgument)
}

func TestJob(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	ann, bob := locks.Job(), locks.Job()
	a := must(ann.Lock(ctx, "a"))
	_, err := ann.TryLock(ctx, "a")
	isErr(t, err, rlock.ErrHeldByJob)
	must(0, a.Again())
	must(0, a.Release(ctx))
	if s.mode("a") != "exclusive" {
		t.Fatal("the inner release has released")
	}
	b := must(bob.Lock(ctx, "b"))
	wait := later(func() (*rlock.Hold, error) { return ann.Lock(ctx, "b") })
	s.waiting("b", 1)
	_, err = ann.Lock(ctx, "b")
	isErr(t, err, rlock.ErrHeldByJob)
	_, err = bob.Lock(ctx, "a")
	isErr(t, err, rlock.ErrDeadlock)
	var deadlock *rlock.DeadlockError
	if !errors.As(err, &deadlock) || deadlock.Text == "" {
		t.Fatal(err)
	}
	must(0, b.Release(ctx))
	if got := soon(t, "b", wait).hold; got.Owner != a.Owner || got.Owner != ann.Owner {
		t.Fatal("a job has one owner")
	}
	must(0, a.Release(ctx))
	again := must(ann.TryLock(ctx, "a"))
	must(0, again.Release(ctx))
}

func TestJobAsksAgainAtOnce(t *testing.T) {
	s := startServer(t)
	job := s.locks().Job()
	over, cancel := context.WithCancel(ctx)
	cancel()
	for range 200 {
		hold := must(job.TryLock(ctx, "a"))
		hold.Release(over) // goes on without waiting for the reply
	}
	other := must(s.locks().Lock(ctx, "a"))
	for range 100 {
		waits, giveUp := context.WithCancel(ctx)
		wait := later(func() (*rlock.Hold, error) { return job.Lock(waits, "a") })
		giveUp()
		isErr(t, soon(t, "the end of the wait", wait).err, context.Canceled)
	}
	wait := later(func() (*rlock.Hold, error) { return job.Lock(ctx, "a") })
	s.waiting("a", 1)
	must(0, other.Release(ctx))
	hold := soon(t, "a", wait)
	if hold.err != nil || hold.hold.Renew(ctx, time.Minute) != nil {
		t.Fatal(hold.err, hold.hold.Err())
	}
}

func TestRefused(t *testing.T) {
	s := startServer(t)
	s.do("SET text 1")
	_, err := s.locks().Lock(ctx, "text")
	var refused *rlock.RefusedError
	if !errors.As(err, &refused) || refused.Code != "WRONGTYPE" {
		t.Fatal(err)
	}
	s.do("CONFIG SET min-replicas-to-write 1")
	_, err = s.locks().TryLock(ctx, "jobs")
	var base rlock.Error
	if !errors.As(err, &refused) || refused.Code != "NOREPLICAS" || !errors.As(err, &base) {
		t.Fatal(err)
	}
	s.do("CONFIG SET min-replicas-to-write 0")
	s.do("CONFIG SET requirepass secret")
	_, err = s.locks().Lock(ctx, "jobs")
	if !errors.As(err, &refused) || refused.Code != "NOAUTH" {
		t.Fatal(err)
	}
}

// A release that the server refuses for now is retried until it takes it.
func TestReleaseRefused(t *testing.T) {
	s := startServer(t)
	hold := must(s.locks().Lock(ctx, "jobs", rlock.Lease(5*time.Second)))
	s.do("CONFIG SET min-replicas-to-write 1")
	isErr(t, hold.Release(ctx), rlock.ErrRefused)
	s.do("CONFIG SET min-replicas-to-write 0")
	s.free("jobs")
}

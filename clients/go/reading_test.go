package rlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	rlock "rlock.invalid/clients/go"
)

// briskly takes and releases a lock so often in a row that the calls read their replies themselves.
func briskly(locks *rlock.Locks, key string) {
	for range 100 {
		must(0, must(locks.Lock(ctx, key)).Release(ctx))
	}
}

func TestCallThatReadsHeedsItsContext(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	for range 10 {
		briskly(locks, "jobs")
		p.hold(true)
		cancelled, cancel := context.WithCancel(ctx)
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err := locks.Lock(cancelled, "jobs")
		isErr(t, err, context.Canceled)
		p.hold(false)
	}
	briskly(locks, "jobs")
	hold := must(locks.Lock(ctx, "jobs"))
	p.hold(true)
	expired, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	isErr(t, hold.Release(expired), context.DeadlineExceeded)
	p.hold(false)
	s.free("jobs")
}

func TestHalfAReplyHoldsNobodyUp(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	hold := must(locks.Lock(ctx, "other"))
	briskly(locks, "jobs")
	p.holdHalf()
	cancelled, cancel := context.WithCancel(ctx)
	call := later(func() (*rlock.Hold, error) { return locks.Lock(cancelled, "jobs") })
	time.Sleep(50 * time.Millisecond)
	must(0, hold.Err())
	cancel()
	isErr(t, soon(t, "the end", call).err, context.Canceled)
	p.hold(false)
	briskly(locks, "jobs")
	must(0, hold.Release(ctx))
}

func TestLossIsNotifiedWhenCallsHaveRead(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	for range 10 {
		hold := must(locks.Lock(ctx, "other"))
		briskly(locks, "jobs")
		s.do("RLOCK.FORCE other")
		lostWith(t, hold, "forced")
	}
	hold := must(locks.Lock(ctx, "other"))
	briskly(locks, "jobs")
	s.do("CLIENT KILL TYPE pubsub")
	lostWith(t, hold, "connection")
	briskly(locks, "jobs")
}

func TestWaitIsGrantedWhileCallsRead(t *testing.T) {
	s := startServer(t)
	locks, other := s.locks(), s.locks()
	for range 10 {
		held := must(other.Lock(ctx, "jobs"))
		briskly(locks, "free")
		given := make(chan *rlock.Hold)
		go func() { given <- must(locks.Lock(ctx, "jobs")) }()
		s.waiting("jobs", 1)
		briskly(locks, "free")
		must(0, held.Release(ctx))
		must(0, (<-given).Release(ctx))
	}
}

// Now one goroutine calls, now several at once.
func TestCallsReadByTurns(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	for size := range 4 {
		var group sync.WaitGroup
		for n := range size + 1 {
			group.Go(func() {
				for range 3 {
					briskly(locks, fmt.Sprint("jobs:", n))
					time.Sleep(time.Duration(n) * time.Millisecond)
				}
			})
		}
		group.Wait()
	}
}

package rlock_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	rlock "rlock.invalid/clients/go"
)

func TestLossIsNotified(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	stays := must(locks.Lock(ctx, "stays"))
	forced, deleted := must(locks.Lock(ctx, "forced")), must(locks.Lock(ctx, "deleted"))
	plain := must(locks.Lock(ctx, "plain", rlock.NoWatchdog()))
	expires := must(locks.Lock(ctx, "expires", rlock.NoWatchdog(), rlock.Lease(4*time.Second)))
	s.do("RLOCK.FORCE forced")
	s.do("DEL deleted")
	s.do("RLOCK.FORCE plain")
	lostWith(t, forced, "forced")
	lostWith(t, deleted, "deleted")
	lostWith(t, plain, "forced")
	soon(t, "the end of the lease", expires.Lost())
	isErr(t, expires.Renew(ctx, time.Second), rlock.ErrLost)
	if err := stays.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestMax(t *testing.T) {
	s := startServer(t)
	hold := must(s.locks().Lock(ctx, "jobs", rlock.Max(4*time.Second)))
	lostWith(t, hold, "max")
	s.free("jobs")
}

func TestRenew(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	hold := must(locks.Lock(ctx, "jobs", rlock.NoWatchdog(), rlock.Lease(6*time.Second)))
	for range 10 {
		time.Sleep(650 * time.Millisecond)
		must(0, hold.Renew(ctx, 6*time.Second))
	}
	must(0, hold.Err())
	must(0, hold.Renew(ctx, 4*time.Second))
	soon(t, "the end of the lease", hold.Lost())
	isErr(t, hold.Renew(ctx, time.Second), rlock.ErrLost)
	isErr(t, hold.Renew(ctx, 0), rlock.ErrArgument)
	watched := must(locks.Lock(ctx, "watched"))
	must(0, watched.Renew(ctx, time.Hour))
	if left := s.do("PTTL watched").(int64); left < 3_000_000 {
		t.Fatal(left)
	}
	must(0, watched.Release(ctx))
	isErr(t, watched.Renew(ctx, time.Hour), rlock.ErrArgument)
}

// Who waited for a plain lease knows its deadline by a RENEW.
func TestPlainWait(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	first := must(locks.Lock(ctx, "jobs"))
	wait := later(func() (*rlock.Hold, error) {
		return locks.Lock(ctx, "jobs", rlock.NoWatchdog(), rlock.Lease(4*time.Second))
	})
	s.waiting("jobs", 1)
	time.Sleep(4500 * time.Millisecond) // longer than the lease
	must(0, first.Release(ctx))
	got := soon(t, "the grant", wait)
	if got.err != nil || got.hold.Err() != nil {
		t.Fatal(got.err, got.hold)
	}
	soon(t, "the end of the lease", got.hold.Lost())
}

func TestDo(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	own := errors.New("own")
	err := locks.Do(ctx, "jobs", func(ctx context.Context, hold *rlock.Hold) error {
		if hold.Token == 0 || s.mode("jobs") != "exclusive" {
			t.Error("not held")
		}
		return own
	})
	if err != own && !errors.Is(err, own) || errors.Is(err, rlock.ErrLost) {
		t.Fatal(err)
	}
	err = locks.Do(ctx, "jobs", func(ctx context.Context, hold *rlock.Hold) error {
		s.do("RLOCK.FORCE jobs")
		<-ctx.Done()
		var lost *rlock.LostError
		if !errors.As(context.Cause(ctx), &lost) || lost.Reason != "forced" {
			t.Error(context.Cause(ctx))
		}
		return own
	})
	isErr(t, err, rlock.ErrLost)
	isErr(t, err, own)
	err = locks.Do(ctx, "jobs", func(ctx context.Context, hold *rlock.Hold) error {
		s.do("RLOCK.FORCE jobs")
		<-ctx.Done()
		return nil
	})
	isErr(t, err, rlock.ErrLost)
	func() {
		defer func() { recover() }()
		locks.Do(ctx, "jobs", func(context.Context, *rlock.Hold) error { panic("own") })
	}()
	if s.mode("jobs") != "free" {
		t.Fatal("a panic keeps the lock")
	}
}

func TestConnectionIsKilled(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	hold := must(locks.Lock(ctx, "watched"))
	plain := must(locks.Lock(ctx, "plain", rlock.NoWatchdog(), rlock.Lease(time.Minute)))
	s.do("RLOCK.ACQUIRE jobs other 60000")
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs") })
	s.waiting("jobs", 1)
	s.do("CLIENT KILL TYPE pubsub")
	lostWith(t, hold, "connection")
	must(0, plain.Err())
	s.free("watched")
	s.waiting("jobs", 1)
	s.do("RLOCK.RELEASE jobs other")
	got := soon(t, "the grant", wait)
	if got.err != nil || got.hold.Err() != nil {
		t.Fatal(got)
	}
	must(0, plain.Renew(ctx, time.Minute))
	must(0, plain.Release(ctx))
	s.free("plain")
}

func TestServerRestarts(t *testing.T) {
	s := startServer(t)
	locks := s.locks(rlock.Timeout(3 * time.Second))
	hold := must(locks.Lock(ctx, "held"))
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "held") })
	s.waiting("held", 1)
	s.kill()
	lostWith(t, hold, "connection")
	_, err := locks.TryLock(ctx, "free")
	isErr(t, err, rlock.ErrConnection)
	bounded, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	_, err = locks.Lock(bounded, "free")
	isErr(t, err, rlock.ErrConnection)
	isErr(t, err, context.DeadlineExceeded)
	s.start()
	got := soon(t, "the grant", wait)
	if got.err != nil || got.hold.Token <= hold.Token {
		t.Fatal(got)
	}
}

func TestFrozenServer(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	const lease = 5 * time.Second
	hold := must(locks.Lock(ctx, "held", rlock.Lease(lease)))
	time.Sleep(time.Second)
	stopped := time.Now()
	s.signal(syscall.SIGSTOP)
	lostWith(t, hold, "connection")
	took := time.Since(stopped)
	s.signal(syscall.SIGCONT)
	if took > 4*lease || took < lease/4 {
		t.Fatal("lost after ", took)
	}
	s.free("held")
	must(locks.TryLock(ctx, "held"))
}

func TestDemoted(t *testing.T) {
	s, other := startServer(t), startServer(t)
	locks := s.locks()
	hold := must(locks.Lock(ctx, "held"))
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "held") })
	s.waiting("held", 1)
	s.admin.Do(ctx, "REPLICAOF", "127.0.0.1", other.port)
	soon(t, "the loss", hold.Lost())
	_, err := locks.TryLock(ctx, "free")
	isErr(t, err, rlock.ErrConnection)
	s.do("REPLICAOF NO ONE")
	if got := soon(t, "the grant", wait); got.err != nil {
		t.Fatal(got.err)
	}
}

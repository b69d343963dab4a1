package rlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	rlock "rlock.invalid/clients/go"
)

var plainMinute = []rlock.Option{rlock.NoWatchdog(), rlock.Lease(time.Minute)}

// Holds without the watchdog of each kind: what is done to them while the connection is away
// is notified when it is back, and what is done then at once.
func TestPlainHoldsAreRegained(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	take := map[string]func(name string) *rlock.Hold{
		"plain": func(name string) *rlock.Hold { return must(locks.TryLock(ctx, name, plainMinute...)) },
		"read": func(name string) *rlock.Hold {
			return must(locks.TryLock(ctx, name, append(plainMinute, rlock.Read())...))
		},
		"permits": func(name string) *rlock.Hold {
			return must(locks.TryLock(ctx, name, append(plainMinute, rlock.Limit(3), rlock.Permits(2))...))
		},
		"many": func(name string) *rlock.Hold {
			return must(locks.LockMany(ctx, []string{name, name + ":2"}, plainMinute...))
		},
	}
	away, back, stays := map[string]*rlock.Hold{}, map[string]*rlock.Hold{}, map[string]*rlock.Hold{}
	for kind, take := range take {
		away[kind], back[kind], stays[kind] = take("away:"+kind), take("back:"+kind), take("stays:"+kind)
	}
	p.hold(true)
	p.closeAll(t)
	for kind := range take {
		s.do("RLOCK.FORCE away:" + kind)
	}
	p.hold(false)
	for _, hold := range away {
		lostWith(t, hold, "expired")
	}
	s.free("away:many:2")
	for kind, hold := range back {
		must(0, hold.Err())
		s.do("RLOCK.FORCE back:" + kind)
		lostWith(t, hold, "forced")
	}
	s.free("back:many:2")
	for _, hold := range stays {
		must(0, hold.Err())
		must(0, hold.Renew(ctx, time.Minute))
		must(0, hold.Release(ctx))
	}
	for kind := range take {
		s.free("stays:" + kind)
	}
}

// Neither here nor at the server.
func TestDeadlineStaysOverAReconnect(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	const lease = 16 * time.Second
	began := time.Now()
	hold := must(locks.TryLock(ctx, "jobs", rlock.NoWatchdog(), rlock.Lease(lease)))
	taken := time.Now()
	time.Sleep(8 * time.Second) // so that a lease that began anew would be seen
	cut := time.Now()
	p.holdFrom(t, "RLOCK.RENEW", func() { p.closeAll(t) })
	p.hold(false)
	until(t, "the renewal", func() bool {
		return strings.Contains(strings.ToLower(s.do("INFO commandstats").(string)), "cmdstat_rlock.renew")
	})
	// What was left, when that was sent, rounded up: the message takes its time.
	most := time.Until(taken.Add(lease)) + 6*time.Second
	left := time.Duration(s.do("PTTL jobs").(int64)) * time.Millisecond
	if least := time.Until(began.Add(lease)) - 100*time.Millisecond; left > most || left < least {
		t.Error(left, " are left at the server, and not ", least, " to ", most)
	}
	must(0, hold.Err())
	soon(t, "the end of the lease", hold.Lost())
	if held := time.Since(began); held < lease-50*time.Millisecond || time.Since(cut) > lease {
		t.Error("lost after ", held)
	}
}

// A renewal by the program, which the connection lost, stands.
func TestRenewalAcrossAReconnect(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	hold := must(locksAt(t, p.Addr().String()).TryLock(ctx, "jobs", rlock.NoWatchdog(), rlock.Lease(20*time.Second)))
	p.cutNext("RLOCK.RENEW")
	must(0, hold.Renew(ctx, time.Minute))
	p.hasCut(t, 1)
	if left := s.do("PTTL jobs").(int64); left < 30_000 {
		t.Error(left)
	}
	must(0, hold.Release(ctx))
}

func TestServerRestartsWithoutItsData(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	hold := must(locks.TryLock(ctx, "jobs", plainMinute...))
	many := must(locks.LockMany(ctx, []string{"a", "b"}, plainMinute...))
	s.kill()
	must(0, hold.Err())
	s.start()
	lostWith(t, hold, "expired")
	lostWith(t, many, "expired")
}

// What was forced while the connection was away is no clean release when it is back.
func TestReleaseBehindTheQuestion(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	for _, want := range []error{nil, rlock.ErrLost} {
		hold := must(locks.TryLock(ctx, "jobs", plainMinute...))
		p.holdFrom(t, "RLOCK.RENEW", func() {
			if p.hold(true); want != nil {
				s.do("RLOCK.FORCE jobs")
			}
			p.closeAll(t)
			p.hold(false)
		})
		bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
		released := make(chan error, 1)
		go func() { released <- hold.Release(bounded) }()
		p.hold(false)
		if err := soon(t, "the release", released); want == nil && err != nil {
			t.Error(err)
		} else if want != nil {
			isErr(t, err, want)
		}
		cancel()
		s.free("jobs")
	}
}

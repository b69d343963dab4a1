package rlock_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	rlock "rlock.invalid/clients/go"
)

// A hold gives way to whoever waits, and is a hold again.

var anyAge = rlock.Least(0)

// A way is a GiveWay that has released its hold: somebody has the lock in between, and it waits behind.
type way struct {
	s       *server
	hold    *rlock.Hold
	between *rlock.Hold
	done    <-chan error
}

// giveWayTo gives way to a waiter, who has the lock then.
func giveWayTo(w *waiter, ctx context.Context, hold *rlock.Hold, opts ...rlock.Option) *way {
	w.s.t.Helper()
	isWanted(w.s.t, hold)
	done := make(chan error, 1)
	go func() {
		gave, err := hold.GiveWay(ctx, append(opts, anyAge)...)
		if err == nil && !gave {
			err = errors.New("it did not give way")
		}
		done <- err
	}()
	got := soon(w.s.t, "the lock in between", w.done)
	must(0, got.err)
	return &way{w.s, hold, got.hold, done}
}

func (w *way) waits() *way {
	w.s.t.Helper()
	w.s.waiting("jobs", 1)
	return w
}

// comesBack ends what is in between.
func (w *way) comesBack() {
	w.s.t.Helper()
	must(0, w.between.Release(ctx))
	must(0, soon(w.s.t, "the hold again", w.done))
	if w.hold.Token <= w.between.Token {
		w.s.t.Error("its token is ", w.hold.Token, " after ", w.between.Token)
	}
}

// commands are those about locks that went through it, from a number of pieces on.
func (p *proxy) commands(from int) []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var names []string
	for _, name := range regexp.MustCompile(`\r\nRLOCK\.\w+`).FindAllString(strings.Join(p.pieces[from:], ""), -1) {
		if !strings.HasSuffix(name, "HEARTBEAT") {
			names = append(names, name[2:])
		}
	}
	return names
}

func (p *proxy) piecesNow() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.pieces)
}

func TestGiveWay(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks, others := locksAt(t, p.Addr().String()), s.locks()
	one := regexp.MustCompile(`(?s)RLOCK\.RELEASE.*IFTOKEN.*RLOCK\.ACQUIRE.*QUEUE.*WANTED\r\n$`)
	for name, c := range map[string]struct{ its, other []rlock.Option }{
		"with the watchdog": {},
		"without it":        {its: plainMinute},
		"reads":             {[]rlock.Option{rlock.Read()}, []rlock.Option{rlock.Write()}},
		"writes":            {[]rlock.Option{rlock.Write()}, []rlock.Option{rlock.Read()}},
		"permits":           {[]rlock.Option{rlock.Limit(4), rlock.Permits(2)}, []rlock.Option{rlock.Limit(4), rlock.Permits(4)}},
	} {
		t.Run(name, func(t *testing.T) {
			hold := must(locks.Lock(ctx, "jobs", c.its...))
			token := hold.Token
			w := startWaiter(s, others, c.other...)
			from := p.piecesNow()
			way := giveWayTo(w, ctx, hold).waits()
			if way.between.Token <= token || hold.Wanted() {
				t.Error("it holds still")
			}
			isErr(t, hold.Renew(ctx, time.Minute), rlock.ErrArgument)
			must(0, hold.Err())
			p.mutex.Lock()
			var ends []string
			for _, piece := range p.pieces[from:] {
				if strings.Contains(piece, "RLOCK.RELEASE") || strings.Contains(piece, "RLOCK.ACQUIRE") {
					ends = append(ends, piece)
				}
			}
			p.mutex.Unlock()
			if len(ends) != 1 || !one.MatchString(ends[0]) {
				t.Errorf("it said %q", ends)
			}
			way.comesBack()
			must(0, hold.Err())
			if holders := s.holders("jobs"); len(holders) != 1 {
				t.Error(holders)
			}
			must(0, hold.Renew(ctx, time.Minute))
			must(0, hold.Release(ctx))
			s.free("jobs")
		})
	}
}

func TestNeedNotGiveWay(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	hold := must(locksAt(t, p.Addr().String()).Lock(ctx, "jobs"))
	from, token := p.piecesNow(), hold.Token
	stays := func(opts ...rlock.Option) {
		t.Helper()
		if gave := must(hold.GiveWay(ctx, opts...)); gave || hold.Token != token {
			t.Fatal("it gave way")
		}
	}
	for range 20 {
		stays(anyAge)
	}
	w := startWaiter(s, s.locks())
	isWanted(t, hold)
	stays(rlock.Least(time.Minute))
	must(0, hold.Renew(ctx, time.Minute)) // behind whatever else it may have said
	if said := strings.Join(p.commands(from), " "); said != "RLOCK.RENEW RLOCK.RENEW" {
		t.Error("it said ", said)
	}
	go w.ends()
	until(t, "it to be old enough", func() bool { return must(hold.GiveWay(ctx, rlock.Least(500*time.Millisecond))) })
	token = hold.Token
	next := startWaiter(s, s.locks())
	isWanted(t, hold)
	stays(rlock.Least(time.Minute)) // counted from the last grant
	must(0, hold.Release(ctx))
	next.ends()
}

func TestGiveWayIsWantedAgain(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	others := s.locks()
	hold := must(locksAt(t, p.Addr().String()).Lock(ctx, "jobs"))
	first := giveWayTo(startWaiter(s, others), ctx, hold).waits()
	second := &waiter{s: s, done: later(func() (*rlock.Hold, error) { return others.Lock(ctx, "jobs") })}
	s.waiting("jobs", 2)
	from := p.piecesNow()
	first.comesBack()
	must(0, soon(t, "it to be wanted", awaits(hold)))
	if said := p.commands(from); len(said) > 0 {
		t.Error("it said ", said)
	}
	giveWayTo(second, ctx, hold).waits().comesBack()
	if hold.Wanted() {
		t.Error("wanted by what was said before")
	}
	must(0, hold.Release(ctx))
}

func TestGiveWayCountsAnew(t *testing.T) {
	s := startServer(t)
	locks, others := s.locks(), s.locks()
	long := must(locks.Lock(ctx, "jobs", rlock.NoWatchdog(), rlock.Lease(20*time.Second)))
	must(0, long.Renew(ctx, 10*time.Minute))
	giveWayTo(startWaiter(s, others), ctx, long).comesBack()
	if left := s.do("PTTL jobs").(int64); left < 100_000 {
		t.Error(left, " ms are left")
	}
	must(0, long.Release(ctx))
	hold := must(locks.Lock(ctx, "jobs", rlock.Max(8*time.Second)))
	way := giveWayTo(startWaiter(s, others), ctx, hold).waits()
	time.Sleep(8500 * time.Millisecond) // so that the first time is over
	way.comesBack()
	must(0, hold.Err())
	soon(t, "the end of the second", hold.Lost())
}

func TestGiveWayAndTheLoss(t *testing.T) {
	s := startServer(t)
	locks, others := s.locks(), s.locks()
	err := locks.Do(ctx, "jobs", func(work context.Context, hold *rlock.Hold) error {
		lost := hold.Lost()
		giveWayTo(startWaiter(s, others), work, hold).waits().comesBack()
		must(0, hold.Renew(ctx, time.Minute))
		select {
		case <-lost:
			t.Error("it is lost")
		case <-work.Done():
			t.Error("the work is stopped")
		default:
		}
		s.do("RLOCK.FORCE jobs")
		soon(t, "the loss", lost)
		soon(t, "the loss", work.Done())
		isErr(t, context.Cause(work), rlock.ErrLost)
		return nil
	})
	isErr(t, err, rlock.ErrLost)
}

func TestGiveWayOfAJob(t *testing.T) {
	s := startServer(t)
	job, others := s.locks().Job(), s.locks()
	other, hold := must(job.Lock(ctx, "other")), must(job.Lock(ctx, "jobs"))
	for range 3 {
		way := giveWayTo(startWaiter(s, others), ctx, hold).waits()
		if s.mode("other") == "free" {
			t.Error("the other lock is free")
		}
		_, err := job.TryLock(ctx, "jobs")
		isErr(t, err, rlock.ErrHeldByJob)
		way.comesBack()
		if hold.Owner != job.Owner {
			t.Error("its owner is ", hold.Owner)
		}
	}
	must(0, other.Err())
	must(0, hold.Release(ctx))
	s.free("jobs")
	must(0, must(job.Lock(ctx, "jobs")).Release(ctx))
	must(0, other.Release(ctx))
}

func TestGiveWayOverTheNextConnection(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks, others := locksAt(t, p.Addr().String()), s.locks()
	for _, opts := range [][]rlock.Option{nil, plainMinute} {
		for _, job := range []*rlock.Job{nil, locks.Job()} {
			for _, early := range []bool{true, false} {
				lock := locks.Lock
				if job != nil {
					lock = job.Lock
				}
				hold, w := must(lock(ctx, "jobs", opts...)), startWaiter(s, others)
				isWanted(t, hold)
				if early {
					p.cutNext("RLOCK.RELEASE") // both are carried out, and neither is answered
				}
				way := giveWayTo(w, ctx, hold).waits()
				if !early {
					p.closeAll(t)
				}
				way.comesBack()
				must(0, hold.Err())
				must(0, hold.Release(ctx))
				s.free("jobs")
			}
		}
	}
}

func TestGiveWayWithAnOlderModule(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks, others := locksAt(t, p.Addr().String()), s.locks()
	hold := must(locks.Lock(ctx, "jobs"))
	way := giveWayTo(startWaiter(s, others), ctx, hold).waits()
	p.replaces("WANTED", "WANTET") // which it does not know
	asked := p.asked()
	p.closeAll(t)
	until(t, "it to be asked again", func() bool { return p.asked() == asked+1 })
	s.waiting("jobs", 1)
	way.comesBack()
	w := startWaiter(s, others)
	for range 3 {
		if must(hold.GiveWay(ctx, anyAge)) {
			t.Error("it gave way")
		}
		must(0, hold.Renew(ctx, time.Minute))
	}
	if n := p.asked(); n != asked+1 {
		t.Error("it was asked ", n-asked, " times")
	}
	must(0, hold.Release(ctx))
	w.ends()
}

func TestGiveWayWithoutTheModule(t *testing.T) {
	s := startPlainServer(t)
	hold := must(s.locks().Lock(ctx, "jobs"))
	next := later(func() (*rlock.Hold, error) { return s.locks().Lock(ctx, "jobs") })
	for range 3 {
		if must(hold.GiveWay(ctx, anyAge)) {
			t.Error("it gave way")
		}
		must(0, hold.Renew(ctx, time.Minute))
	}
	must(0, hold.Release(ctx))
	must(0, soon(t, "the lock", next).hold.Release(ctx))
}

func TestGiveWayInACluster(t *testing.T) {
	c := startCluster(t)
	locks, others := c.locks(), c.locks()
	for _, key := range []string{"a", "b", "c"} {
		for _, lock := range []func(context.Context, string, ...rlock.Option) (*rlock.Hold, error){locks.Lock, locks.Job().Lock} {
			hold := must(lock(ctx, key))
			next := later(func() (*rlock.Hold, error) { return others.Lock(ctx, key) })
			isWanted(t, hold)
			done := make(chan bool, 1)
			go func() { done <- must(hold.GiveWay(ctx, anyAge)) }()
			must(0, soon(t, "the lock in between", next).hold.Release(ctx))
			if !soon(t, "the hold again", done) {
				t.Error("it did not give way")
			}
			must(0, hold.Release(ctx))
		}
	}
}

package rlock_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// A hold learns that somebody waits for it.

// A waiter waits for "jobs".
type waiter struct {
	s     *server
	leave context.CancelFunc
	done  <-chan outcome
}

func startWaiter(s *server, locks *rlock.Locks, opts ...rlock.Option) *waiter {
	s.t.Helper()
	waits, cancel := context.WithCancel(ctx)
	s.t.Cleanup(cancel)
	w := &waiter{s, cancel, later(func() (*rlock.Hold, error) { return locks.Lock(waits, "jobs", opts...) })}
	s.waiting("jobs", 1)
	return w
}

// leaves has it wait no more.
func (w *waiter) leaves() {
	w.s.t.Helper()
	w.leave()
	w.s.waiting("jobs", 0)
	soon(w.s.t, "the end of the wait", w.done)
}

// ends releases what it waited for.
func (w *waiter) ends() {
	w.s.t.Helper()
	got := soon(w.s.t, "the lock", w.done)
	must(0, got.err)
	must(0, got.hold.Release(ctx))
}

func isWanted(t testing.TB, hold *rlock.Hold) {
	t.Helper()
	until(t, "the hold to be wanted", hold.Wanted)
}

func isUnwanted(t testing.TB, hold *rlock.Hold) {
	t.Helper()
	until(t, "the hold to be wanted no more", func() bool { return !hold.Wanted() })
}

// wantedNow says whether it is, when what the server said before was read: the answer to a command comes behind it.
func wantedNow(hold *rlock.Hold) bool {
	hold.Wanted()
	must(0, hold.Renew(ctx, time.Minute))
	return hold.Wanted()
}

// awaits waits until it is wanted.
func awaits(hold *rlock.Hold) <-chan error {
	done := make(chan error, 1)
	go func() { done <- hold.AwaitWanted(ctx) }()
	return done
}

// asked says how many commands with the word went through the proxy.
func (p *proxy) asked() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return bytes.Count(p.said.Bytes(), []byte("\r\nWANTED\r\n"))
}

func (p *proxy) replaces(word, other string) {
	p.mutex.Lock()
	p.instead = [2]string{word, other}
	p.mutex.Unlock()
}

func TestWanted(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks, others := locksAt(t, p.Addr().String()), s.locks()
	for name, c := range map[string]struct{ its, other []rlock.Option }{
		"with the watchdog": {},
		"without it":        {its: plainMinute},
		"reads":             {[]rlock.Option{rlock.Read()}, []rlock.Option{rlock.Write()}},
		"writes":            {[]rlock.Option{rlock.Write()}, []rlock.Option{rlock.Read()}},
		"permits":           {[]rlock.Option{rlock.Limit(4), rlock.Permits(2)}, []rlock.Option{rlock.Limit(4), rlock.Permits(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			hold := must(locks.Lock(ctx, "jobs", c.its...))
			if hold.Wanted() {
				t.Error("nobody waits")
			}
			one, two := awaits(hold), awaits(hold)
			first := startWaiter(s, others, c.other...)
			must(0, soon(t, "it to be wanted", one))
			must(0, soon(t, "it to be wanted", two))
			must(0, hold.Release(ctx))
			if hold.Wanted() {
				t.Error("it was released")
			}
			first.ends()

			again := must(locks.Lock(ctx, "jobs", c.its...))
			second := startWaiter(s, others, c.other...)
			before := p.asked()
			must(0, soon(t, "it to be wanted by who waits already", awaits(again)))
			if n := p.asked() - before; n != 1 {
				t.Error("it was asked ", n, " times")
			}
			must(0, again.Err())
			must(0, again.Release(ctx))
			second.ends()
		})
	}
}

func TestWantedEndsByItself(t *testing.T) {
	s := startServer(t)
	hold := must(s.locks().Lock(ctx, "jobs", rlock.Lease(6*time.Second)))
	others := s.locks()
	for range 2 {
		other := startWaiter(s, others)
		isWanted(t, hold)
		time.Sleep(4 * time.Second) // so that what was said first is too old
		isWanted(t, hold)
		other.leaves()
		isUnwanted(t, hold)
	}
	wait := awaits(hold)
	other := startWaiter(s, others)
	must(0, soon(t, "it to be wanted again", wait))
	must(0, hold.Release(ctx))
	other.ends()
}

func TestWantedByWhom(t *testing.T) {
	s := startServer(t)
	locks, others := s.locks(), s.locks()
	hold := must(locks.Lock(ctx, "jobs"))
	hold.Wanted()
	for range 3 {
		_, err := others.TryLock(ctx, "jobs")
		isErr(t, err, rlock.ErrNotAcquired)
	}
	if wantedNow(hold) {
		t.Error("wanted by who only tries")
	}
	must(0, hold.Release(ctx))

	reader := must(locks.Lock(ctx, "jobs", rlock.Read()))
	reader.Wanted()
	beside := must(others.Lock(ctx, "jobs", rlock.Read()))
	if wantedNow(reader) {
		t.Error("wanted by who reads beside it")
	}
	writer := startWaiter(s, others, rlock.Write())
	isWanted(t, reader)
	isWanted(t, beside)
	writer.leaves()
}

func TestWantedKeepsTheDeadline(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	const lease = 12 * time.Second
	began := time.Now()
	hold := must(locks.Lock(ctx, "jobs", rlock.NoWatchdog(), rlock.Lease(lease)))
	taken := time.Now()
	time.Sleep(4 * time.Second) // so that a lease that began anew would be seen
	before := time.Now()
	hold.Wanted()
	s.renewed(1)
	left := time.Duration(s.do("PTTL jobs").(int64)) * time.Millisecond
	least, most := time.Until(began.Add(lease))-100*time.Millisecond, taken.Add(lease).Sub(before)+100*time.Millisecond
	if left < least || left > most {
		t.Error(left, " are left, and not ", least, " to ", most)
	}
	other := startWaiter(s, s.locks())
	isWanted(t, hold)
	soon(t, "the end of the lease", hold.Lost())
	if hold.Wanted() {
		t.Error("it is over")
	}
	other.ends()
}

// renewed waits until the server got so many RENEWs.
func (s *server) renewed(n int) {
	s.t.Helper()
	until(s.t, itoa(n)+" RENEWs", func() bool { calls, _ := s.calls("rlock.renew"); return calls >= n })
}

// What a renewal under way sets is not undone by the question, also not by one that is asked again.
func TestWantedWhileItIsRenewed(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	for _, opts := range [][]rlock.Option{{rlock.Lease(20 * time.Second)}, {rlock.Lease(20 * time.Second), rlock.NoWatchdog()}} {
		hold := must(locks.Lock(ctx, "jobs", opts...))
		before, _ := s.calls("rlock.renew")
		renewal := make(chan error, 1)
		p.holdFrom(t, "RLOCK.RENEW", func() {
			go func() { renewal <- hold.Renew(ctx, 10*time.Minute) }()
		})
		hold.Wanted()
		s.renewed(before + 2)
		p.hold(false)
		must(0, soon(t, "the renewal", renewal))
		if left := s.do("PTTL jobs").(int64); left < 300_000 {
			t.Error(left)
		}
		must(0, hold.Release(ctx))
	}
}

func TestWantedOverAReconnect(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	hold, away := must(locks.Lock(ctx, "jobs", plainMinute...)), must(locks.Lock(ctx, "away", plainMinute...))
	never := must(locks.Lock(ctx, "never", plainMinute...))
	hold.Wanted()
	s.renewed(1)
	for n := 1; n < 3; n++ {
		before, _ := s.calls("rlock.renew")
		p.hold(true)
		p.closeAll(t)
		away.Wanted() // while there is no connection
		p.hold(false)
		s.renewed(before + 3)
		if asked := p.asked(); asked != 1+2*n {
			t.Error("it was asked ", asked, " times")
		}
	}
	wait := awaits(hold)
	startWaiter(s, s.locks())
	must(0, soon(t, "it to be wanted", wait))
	s.do("RLOCK.FORCE away")
	lostWith(t, away, "forced")
	p.hold(true)
	p.closeAll(t)
	s.do("RLOCK.FORCE jobs")
	p.hold(false)
	lostWith(t, hold, "expired")
	if hold.Wanted() {
		t.Error("it was lost")
	}
	must(0, never.Err())
}

func TestWantedByAnOlderModule(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	p.replaces("WANTED", "WANTET") // which it does not know
	locks := locksAt(t, p.Addr().String())
	hold, watched := must(locks.Lock(ctx, "jobs", plainMinute...)), must(locks.Lock(ctx, "watched"))
	hold.Wanted()
	until(t, "it to be asked", func() bool { return p.asked() == 1 })
	wait := awaits(hold)
	if wantedNow(hold) {
		t.Error("nobody waits")
	}
	startWaiter(s, s.locks())
	if wantedNow(watched) || wantedNow(hold) || p.asked() != 1 {
		t.Error("it was asked ", p.asked(), " times")
	}
	for n := 2; n < 4; n++ {
		before, _ := s.calls("rlock.renew")
		p.closeAll(t)
		s.renewed(before + 2) // with the word, and without
		if p.asked() != n || hold.Err() != nil {
			t.Error("it was asked ", p.asked(), " times; ", hold.Err())
		}
	}
	lostWith(t, watched, "connection")
	s.do("RLOCK.FORCE jobs")
	lostWith(t, hold, "forced") // of which it is notified all the same
	isErr(t, soon(t, "the end of the wait", wait), rlock.ErrLost)
}

func TestWantedNeedsARight(t *testing.T) {
	s := startServer(t)
	s.do("ACL SETUSER ann on >secret ~* &* +@all -rlock.renew")
	client := redis.NewClient(&redis.Options{Addr: s.addr(), Username: "ann", Password: "secret"})
	defer client.Close()
	locks := rlock.New(client)
	defer locks.Close()
	hold := must(locks.Lock(ctx, "jobs", rlock.Lease(4*time.Minute))) // for the server renews it by the right of this user
	hold.Wanted()
	rejected := func() int { _, n := s.calls("rlock.renew"); return n }
	until(t, "it to be refused", func() bool { return rejected() == 1 })
	must(0, must(locks.Lock(ctx, "more")).Release(ctx)) // its answer comes behind that
	second := must(locks.Lock(ctx, "second"))
	second.Wanted()
	must(0, second.Release(ctx))
	if hold.Wanted() || hold.Err() != nil || rejected() != 1 {
		t.Error(hold.Err(), rejected())
	}
	must(0, hold.Release(ctx))
}

// What the server could not do it is asked again.
func TestWantedIsRefusedForNow(t *testing.T) {
	s := startServer(t)
	hold := must(s.locks().Lock(ctx, "jobs", rlock.Lease(4*time.Minute)))
	s.do("CONFIG SET min-replicas-to-write 1")
	wait := awaits(hold)
	until(t, "it to be asked again", func() bool { _, n := s.calls("rlock.renew"); return n > 1 })
	s.do("CONFIG SET min-replicas-to-write 0")
	other := startWaiter(s, s.locks())
	must(0, soon(t, "it to be wanted", wait))
	must(0, hold.Release(ctx))
	other.ends()
}

func TestNeverWanted(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...string) *server{"several keys": startServer, "no module": startPlainServer} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, start(t))
			locks := locksAt(t, p.Addr().String())
			keys := map[string][]string{"several keys": {"a", "b"}, "no module": {"a"}}[name]
			hold := must(locks.LockMany(ctx, keys, plainMinute...))
			wait := awaits(hold)
			if wantedNow(hold) || p.asked() != 0 {
				t.Error("it was asked ", p.asked(), " times")
			}
			must(0, hold.Release(ctx))
			if err := soon(t, "the end of the wait", wait); err == nil || !strings.Contains(err.Error(), "released") {
				t.Error(err)
			}
		})
	}
}

func TestAwaitWantedEnds(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	some := must(locks.Lock(ctx, "some"))
	ends, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- some.AwaitWanted(ends) }()
	cancel()
	isErr(t, soon(t, "the end of the context", done), context.Canceled)
	isErr(t, some.AwaitWanted(ends), context.Canceled)
	for _, c := range []struct {
		end func(*rlock.Hold)
		is  error
	}{
		{func(hold *rlock.Hold) { must(0, hold.Release(ctx)) }, rlock.ErrArgument},
		{func(*rlock.Hold) { s.do("RLOCK.FORCE jobs") }, rlock.ErrLost},
		{func(*rlock.Hold) { must(0, locks.Close()) }, rlock.ErrLost},
	} {
		hold := must(locks.Lock(ctx, "jobs"))
		one, two := awaits(hold), awaits(hold)
		c.end(hold)
		isErr(t, soon(t, "the end of the hold", one), c.is)
		isErr(t, soon(t, "the end of the hold", two), c.is)
		isErr(t, hold.AwaitWanted(ctx), c.is)
		if hold.Wanted() {
			t.Error("it is over")
		}
	}
}

// A loss runs the program's code, which asks; and a context may call anything, and panic.
func TestWantedFromAnywhere(t *testing.T) {
	s := startServer(t)
	locks, others := s.locks(), s.locks()
	hold, other := must(locks.Lock(ctx, "jobs")), must(locks.Lock(ctx, "other"))
	asked := make(chan bool, 1)
	go other.AwaitWanted(newCounted(1000, func() { hold.Wanted() }))
	ends, cancel := context.WithCancelCause(ctx)
	context.AfterFunc(ends, func() { asked <- hold.Wanted() || other.Wanted() })
	go func() { <-other.Lost(); cancel(nil) }()
	s.do("RLOCK.FORCE other")
	if soon(t, "the callback", asked) {
		t.Error("nobody waits")
	}
	apart(t, func() { hold.AwaitWanted(&spoilt{Context: ctx, method: "Done", left: 1}) })
	apart(t, func() { hold.AwaitWanted(&spoilt{Context: ctx, method: "Done", left: 1, goexit: true}) })
	next := startWaiter(s, others)
	isWanted(t, hold)
	// What comes behind the release is nothing.
	must(0, hold.Release(ctx))
	if hold.Wanted() {
		t.Error("it was released")
	}
	next.ends()
	s.goesOn(locks, "jobs", "other")
}

// A message that comes behind the release is nothing, and words behind it are no error.
func TestWantedMessages(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	hold := must(locks.Lock(ctx, "jobs"))
	channel := s.do("PUBSUB CHANNELS rlock:*").([]any)[0].(string)
	wait := awaits(hold)
	must(0, s.admin.Publish(ctx, channel, "wanted 1 and more").Err())
	isWanted(t, hold)
	must(0, soon(t, "it to be wanted", wait))
	must(0, hold.Release(ctx))
	must(0, s.admin.Publish(ctx, channel, "wanted 1").Err())
	must(0, must(locks.Lock(ctx, "jobs")).Release(ctx))
	if hold.Wanted() {
		t.Error("it was released")
	}
}

func TestGrantSaysThatItIsWanted(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	locks := locksAt(t, p.Addr().String())
	s.do("RLOCK.ACQUIRE jobs raw 60000")
	// A request that asks at once, as this client's do not.
	p.replaces("$8\r\nWATCHDOG\r\n", "$6\r\nWANTED\r\n")
	first := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", rlock.Lease(time.Minute)) })
	s.waiting("jobs", 1)
	p.replaces("", "")
	behind := later(func() (*rlock.Hold, error) { return s.locks().Lock(ctx, "jobs") })
	s.waiting("jobs", 2)
	s.do("RLOCK.RELEASE jobs raw")
	got := soon(t, "the lock", first)
	must(0, got.err)
	token := s.do("RLOCK.INFO jobs").(map[any]any)["holders"].([]any)[0].(map[any]any)["token"]
	if got.hold.Token != token || !got.hold.Wanted() {
		t.Error(got.hold.Token, token, got.hold.Wanted())
	}
	must(0, got.hold.Release(ctx))
	must(0, soon(t, "the lock", behind).hold.Release(ctx))
}

func TestWantedInACluster(t *testing.T) {
	c := startCluster(t)
	locks, others := c.locks(), c.locks()
	for _, key := range []string{"a", "b", "c"} {
		hold := must(locks.Lock(ctx, key))
		wait := awaits(hold)
		next := later(func() (*rlock.Hold, error) { return others.Lock(ctx, key) })
		must(0, soon(t, "it to be wanted", wait))
		must(0, hold.Release(ctx))
		must(0, soon(t, "the lock", next).hold.Release(ctx))
	}
}

func TestWantedWhenTheModuleComes(t *testing.T) {
	s := startPlainServer(t, "--enable-module-command", "yes")
	locks, others := s.locks(rlock.AskEvery(100*time.Millisecond)), s.locks(rlock.AskEvery(100*time.Millisecond))
	hold := must(locks.Lock(ctx, "jobs"))
	wait := awaits(hold)
	if hold.Wanted() {
		t.Error("there is no module")
	}
	next := later(func() (*rlock.Hold, error) { return others.Lock(ctx, "jobs") })
	loadModule(s)
	must(0, soon(t, "it to be wanted", wait))
	must(0, hold.Release(ctx))
	must(0, soon(t, "the lock", next).hold.Release(ctx))
}

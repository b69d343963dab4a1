package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// On servers without the module.

// locksOf are those of a user with these rights.
func (s *server) locksOf(rules string, settings ...rlock.Setting) *rlock.Locks {
	s.do("ACL SETUSER ann reset on >secret " + rules)
	client := redis.NewClient(&redis.Options{Addr: s.addr(), Username: "ann", Password: "secret"})
	locks := rlock.New(client, settings...)
	s.t.Cleanup(func() {
		locks.Close()
		client.Close()
	})
	return locks
}

func (s *server) places(key string) int64 { return s.do("ZCARD rlock1_queue:{" + key + "}").(int64) }

func (s *server) gone(keys ...string) {
	s.t.Helper()
	until(s.t, fmt.Sprint(keys, " to be free"), func() bool {
		return s.do("EXISTS "+strings.Join(keys, " ")) == int64(0)
	})
}

// take acquires what some other program has.
func (s *server) take(key string, lease time.Duration) (release func()) {
	hold := must(s.locks().TryLock(ctx, key, rlock.Lease(lease), rlock.NoWatchdog()))
	return func() { must(0, hold.Release(ctx)) }
}

func forEachBackend(t *testing.T, test func(t *testing.T, s *server, locks func(settings ...rlock.Setting) *rlock.Locks)) {
	for name, rules := range map[string]string{"functions": "~* &* +@all", "script": "~* &* +@all -function -fcall -fcall_ro"} {
		t.Run(name, func(t *testing.T) {
			s := startPlainServer(t)
			locks := func(settings ...rlock.Setting) *rlock.Locks {
				locks := s.locksOf(rules, settings...)
				if locks.Backend() != "" {
					t.Error("known before it was asked: ", locks.Backend())
				}
				must(0, must(locks.TryLock(ctx, "first")).Release(ctx))
				if locks.Backend() != name {
					t.Error(locks.Backend())
				}
				return locks
			}
			test(t, s, locks)
		})
	}
}

func TestKindsOfLocksWithoutModule(t *testing.T) {
	forEachBackend(t, func(t *testing.T, s *server, new func(...rlock.Setting) *rlock.Locks) {
		locks, other := new(), new()
		for name, opts := range map[string][]rlock.Option{
			"plain": nil, "read": {rlock.Read()}, "write": {rlock.Write()}, "permits": {rlock.Limit(3), rlock.Permits(2)},
		} {
			hold := must(locks.TryLock(ctx, name, opts...))
			if name != "read" {
				_, err := other.TryLock(ctx, name, opts...)
				isErr(t, err, rlock.ErrNotAcquired)
			}
			must(0, hold.Renew(ctx, time.Minute))
			wait := later(func() (*rlock.Hold, error) { return other.Lock(ctx, name, opts...) })
			if name != "read" {
				until(t, "the place", func() bool { return s.places(name) == 1 })
			}
			must(0, hold.Release(ctx))
			got := soon(t, name, wait)
			if got.err != nil || got.hold.Token <= hold.Token {
				t.Fatal(got.err, got.hold, hold)
			}
			must(0, got.hold.Release(ctx))
			s.gone(name, "rlock1_queue:{"+name+"}")
		}
		many := must(locks.LockMany(ctx, []string{"a", "b"}))
		wait := later(func() (*rlock.Hold, error) { return other.LockMany(ctx, []string{"b", "c"}) })
		_, err := other.LockMany(ctx, []string{"b", "d"}, rlock.Wait(200*time.Millisecond))
		isErr(t, err, rlock.ErrNotAcquired)
		must(0, many.Renew(ctx, time.Minute))
		must(0, many.Release(ctx))
		must(0, soon(t, "b and c", wait).hold.Release(ctx))
		s.gone("a", "b", "c", "d")
	})
}

func TestWaitsEndWithoutModule(t *testing.T) {
	forEachBackend(t, func(t *testing.T, s *server, new func(...rlock.Setting) *rlock.Locks) {
		locks := new()
		release := s.take("jobs", time.Minute)
		for _, wait := range []time.Duration{1, 20 * time.Millisecond, 300 * time.Millisecond} {
			began := time.Now()
			_, err := locks.Lock(ctx, "jobs", rlock.Wait(wait))
			isErr(t, err, rlock.ErrNotAcquired)
			if took := time.Since(began); took < wait || took > wait+20*time.Second {
				t.Error(wait, " took ", took)
			}
		}
		waits, cancel := context.WithCancel(ctx)
		first := later(func() (*rlock.Hold, error) { return locks.Lock(waits, "jobs") })
		until(t, "the place", func() bool { return s.places("jobs") == 1 })
		second := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs") })
		cancel()
		isErr(t, soon(t, "the end", first).err, context.Canceled)
		release()
		must(0, soon(t, "the second", second).hold.Release(ctx))
		s.gone("jobs", "rlock1_queue:{jobs}")
		// A lease that ends is told by no message.
		s.take("jobs", 700*time.Millisecond)
		must(0, must(locks.Lock(ctx, "jobs", rlock.Wait(20*time.Second))).Release(ctx))
	})
}

// Many goroutines of several programs: each is alone, and all have turns.
func TestCrowdWithoutModule(t *testing.T) {
	forEachBackend(t, func(t *testing.T, s *server, new func(...rlock.Setting) *rlock.Locks) {
		var group sync.WaitGroup
		var inside, last, done atomic.Int64
		for range 4 {
			locks := new()
			for range 8 {
				group.Go(func() {
					for range 20 {
						err := locks.Do(ctx, "jobs", func(_ context.Context, hold *rlock.Hold) error {
							if inside.Add(1) > 1 || last.Swap(hold.Token) >= hold.Token {
								t.Error("not alone, or a token that does not rise")
							}
							inside.Add(-1)
							done.Add(1)
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		group.Wait()
		if done.Load() != 4*8*20 {
			t.Error(done.Load())
		}
		s.gone("jobs", "rlock1_queue:{jobs}")
	})
}

func TestHoldsAreKeptByTheClient(t *testing.T) {
	forEachBackend(t, func(t *testing.T, s *server, new func(...rlock.Setting) *rlock.Locks) {
		locks := new()
		const lease = 5 * time.Second
		var kept []*rlock.Hold
		for i, opts := range [][]rlock.Option{{}, {rlock.Read()}, {rlock.Limit(2)}} {
			kept = append(kept, must(locks.TryLock(ctx, fmt.Sprint("kept:", i), append(opts, rlock.Lease(lease))...)))
		}
		kept = append(kept, must(locks.LockMany(ctx, []string{"kept:3", "kept:4"}, rlock.Lease(lease))))
		deleted := must(locks.TryLock(ctx, "deleted", rlock.Lease(lease)))
		overwritten := must(locks.TryLock(ctx, "overwritten", rlock.Lease(lease)))
		some := must(locks.LockMany(ctx, []string{"some", "others"}, rlock.Lease(lease)))
		plain := must(locks.TryLock(ctx, "plain", rlock.Lease(lease), rlock.NoWatchdog()))
		max := must(locks.TryLock(ctx, "max", rlock.Lease(lease), rlock.Max(2*lease)))
		long := must(locks.TryLock(ctx, "long"))
		released := must(locks.TryLock(ctx, "released"))
		s.do("DEL deleted some released")
		isErr(t, released.Release(ctx), rlock.ErrLost)
		s.do("SET overwritten x")
		lostWith(t, deleted, "deleted")
		lostWith(t, overwritten, "overwritten")
		lostWith(t, some, "deleted")
		lostWith(t, plain, "lease")
		lostWith(t, max, "max")
		s.gone("others", "plain", "max")
		s.do("CLIENT KILL TYPE pubsub")
		s.do("FUNCTION FLUSH")
		s.do("SCRIPT FLUSH")
		time.Sleep(lease + lease/4)
		for _, hold := range kept {
			must(0, hold.Err())
			if s.do("EXISTS "+strings.Join(hold.Keys(), " ")) != int64(len(hold.Keys())) {
				t.Error(hold.Keys())
			}
		}
		must(0, long.Renew(ctx, lease))
		s.signal(syscall.SIGSTOP)
		lostWith := func(hold *rlock.Hold) {
			soon(t, "the loss", hold.Lost())
			if lost, ok := hold.Err().(*rlock.LostError); !ok || lost.Reason != "lease" {
				t.Error(hold.Err())
			}
		}
		for _, hold := range append(kept, long) {
			lostWith(hold)
		}
		s.signal(syscall.SIGCONT)
		s.gone("kept:0", "kept:1", "kept:2", "kept:3", "kept:4", "long")
	})
}

// A request of a job has an owner of its own there, and may be made again at once.
func TestJobWithoutModule(t *testing.T) {
	s := startPlainServer(t)
	job := s.locks().Job()
	over, cancel := context.WithCancel(ctx)
	cancel()
	owners := map[string]bool{}
	for range 100 {
		hold := must(job.TryLock(ctx, "a"))
		owners[hold.Owner] = true
		_, err := job.TryLock(ctx, "a")
		isErr(t, err, rlock.ErrHeldByJob)
		hold.Release(over) // goes on without waiting for the reply
	}
	if len(owners) != 100 {
		t.Error(len(owners))
	}
	s.gone("a")
}

func TestRightsWithoutModule(t *testing.T) {
	s := startPlainServer(t, "--cluster-enabled", "no")
	refused := func(rules, code, text string) {
		t.Helper()
		locks := s.locksOf(rules, rlock.Timeout(time.Minute))
		atOnce(t, code, text, func(opts ...rlock.Option) (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", opts...) })
		locks.Close()
	}
	refused("~* &* +@all -@scripting", "NOPERM", "an administrator runs redis-cli -x FUNCTION LOAD")
	refused("~* &* +@all -fcall -evalsha", "NOPERM", "")
	refused("~other &* +@all", "NOPERM", "")
	refused("~* &* +@all -hset", "NOPERM", "")
	if len(s.do("KEYS *").([]any)) != 0 {
		t.Error(s.do("KEYS *"))
	}
	// Who may not hear of it cannot wait, but try.
	locks := s.locksOf("~* resetchannels &rlock:* &redisson_lock__channel:{free} +@all", rlock.Timeout(time.Minute))
	release := s.take("jobs", time.Minute)
	_, err := locks.TryLock(ctx, "jobs")
	isErr(t, err, rlock.ErrNotAcquired)
	_, err = locks.Lock(ctx, "jobs")
	var said *rlock.RefusedError
	if !errors.As(err, &said) || said.Code != "NOPERM" {
		t.Error(err)
	}
	release()
	locks.Close()
	// What README.md says that a user needs.
	_, rights, _ := strings.Cut(string(must(os.ReadFile("README.md"))), "ACL SETUSER worker on >secret ")
	rights, _, _ = strings.Cut(rights, "\n")
	s.do("FUNCTION FLUSH")
	for _, rules := range []string{rights, rights + " -command -fcall -fcall_ro +script|load +evalsha"} {
		locks = s.locksOf(rules)
		hold := must(locks.TryLock(ctx, "lock:jobs", rlock.Lease(10*time.Second)))
		wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "lock:jobs") })
		until(t, "the place", func() bool { return s.places("lock:jobs") == 1 })
		must(0, hold.Release(ctx))
		must(0, soon(t, "the hold", wait).hold.Release(ctx))
		must(0, must(locks.TryLock(ctx, "lock:doc", rlock.Read())).Release(ctx))
		must(0, must(locks.TryLock(ctx, "lock:gpu", rlock.Limit(2))).Release(ctx))
		locks.Close()
	}
}

func loadModule(s *server) {
	must(s.admin.Do(ctx, "MODULE", "LOAD", module()).Result())
}

func (s *server) holders(key string) []any {
	return s.do("RLOCK.INFO " + key).(map[any]any)["holders"].([]any)
}

// The module is loaded under locks that are in use: nothing is lost, and everything goes over.
func TestModuleComesAndGoes(t *testing.T) {
	s := startPlainServer(t, "--enable-module-command", "yes")
	replica := startPlainServer(t, "--enable-module-command", "yes")
	locks := s.locks(rlock.AskEvery(100 * time.Millisecond))
	const lease = 5 * time.Second
	watched := must(locks.TryLock(ctx, "watched", rlock.Lease(lease)))
	plain := must(locks.TryLock(ctx, "plain", plainMinute...))
	many := must(locks.LockMany(ctx, []string{"a", "b"}, rlock.Lease(lease)))
	release := s.take("jobs", time.Minute)
	wait := later(func() (*rlock.Hold, error) { return locks.Lock(ctx, "jobs", rlock.Lease(lease)) })
	until(t, "the place", func() bool { return s.places("jobs") == 1 })
	acked := later(func() (*rlock.Hold, error) {
		return locks.Lock(ctx, "acked", rlock.Lease(lease), rlock.Acks(1, time.Minute))
	})
	until(t, "the hold", func() bool { return s.do("EXISTS acked") == int64(1) })

	loadModule(s)
	until(t, "the module", func() bool { return locks.Backend() == "module" })
	s.waiting("jobs", 1)
	for _, key := range []string{"watched", "acked"} {
		until(t, "the watchdog of "+key, func() bool {
			holders := s.holders(key)
			return len(holders) == 1 && holders[0].(map[any]any)["watchdog"] != nil
		})
	}
	loadModule(replica)
	replica.do(fmt.Sprint("REPLICAOF 127.0.0.1 ", s.port))
	got := soon(t, "the acknowledgement", acked)
	must(0, got.err)
	time.Sleep(lease)
	for _, hold := range []*rlock.Hold{watched, plain, many, got.hold} {
		must(0, hold.Err())
	}
	replica.do("REPLICAOF NO ONE")
	release()
	last := soon(t, "the wait", wait)
	must(0, last.err)
	s.do("RLOCK.FORCE plain")
	lostWith(t, plain, "forced")
	s.do("RLOCK.FORCE a")
	lostWith(t, many, "forced")

	for _, hold := range []*rlock.Hold{watched, got.hold, last.hold} {
		must(0, hold.Err())
		must(0, hold.Release(ctx))
	}
	s.gone("watched", "acked", "jobs")

	// It lets itself be unloaded when nothing is held or waited for.
	until(t, "the end of the module", func() bool { return s.admin.Do(ctx, "MODULE", "UNLOAD", "rlock").Err() == nil })
	next := must(locks.Lock(ctx, "jobs"))
	if locks.Backend() != "functions" {
		t.Error(locks.Backend())
	}
	must(0, next.Release(ctx))
}

// A server that comes back without the module has what was held without the watchdog.
func TestServerComesBackWithoutModule(t *testing.T) {
	s := startPlainServer(t, "--appendonly", "yes", "--appendfsync", "always")
	without := s.args
	s.kill()
	s.args = append([]string{"--loadmodule", module()}, without...)
	s.start()
	locks := s.locks()
	hold := must(locks.TryLock(ctx, "plain", plainMinute...))
	watched := must(locks.TryLock(ctx, "watched"))
	s.kill()
	s.args = without
	s.start()
	lostWith(t, watched, "connection")
	until(t, "the functions", func() bool { return locks.Backend() == "functions" })
	s.gone("watched")
	must(0, hold.Renew(ctx, time.Minute))
	must(0, hold.Release(ctx))
	s.gone("plain")
}

// Whatever is cut or flushed while programs come and go, nothing stays behind.
func TestStormWithoutModule(t *testing.T) {
	s := startPlainServer(t)
	p := startProxy(t, s)
	end := time.Now().Add(3 * time.Second)
	var group sync.WaitGroup
	var done, inside atomic.Int64
	for range 3 {
		locks := locksAt(t, p.Addr().String())
		for i := range 16 {
			group.Go(func() {
				for n := 0; time.Now().Before(end); n++ {
					key := (i + n) % 4
					patience, cancel := context.WithTimeout(ctx, time.Duration(n%7*40+1)*time.Millisecond)
					hold, err := locks.Lock(patience, fmt.Sprint("storm:", key), rlock.Lease(time.Minute))
					cancel()
					if err != nil {
						continue
					}
					if key == 0 && inside.Add(1) > 1 {
						t.Error("not alone")
					}
					if key == 0 {
						inside.Add(-1)
					}
					hold.Release(ctx)
					done.Add(1)
				}
			})
		}
	}
	words := []string{"rlock1_acquire", "rlock1_release", "rlock1_cancel", "SUBSCRIBE"}
	for i := 0; time.Now().Before(end); i++ {
		p.cutNext(words[i%len(words)])
		time.Sleep(50 * time.Millisecond)
		if i%8 == 0 {
			s.do("FUNCTION FLUSH")
		}
	}
	group.Wait()
	p.cutNext("")
	s.gone("storm:0", "storm:1", "storm:2", "storm:3")
	t.Log(done.Load(), " holds")
}

func TestClusterWithoutModule(t *testing.T) {
	c := startPlainCluster(t)
	node, locks, others := c.nodes[0], c.locks(), c.locks()
	holds := []*rlock.Hold{}
	for _, key := range []string{"a", "c", "{b}x", "a{b", "{}"} {
		holds = append(holds, must(locks.Lock(ctx, key, rlock.Lease(5*time.Second))))
	}
	moves := must(locks.Lock(ctx, "{b1}moves", rlock.Lease(5*time.Second)))
	wait := later(func() (*rlock.Hold, error) { return others.Lock(ctx, "{b1}moves") })
	until(t, "the place", func() bool { return node.do("ZCARD rlock1_queue:{b1}moves") == int64(1) })
	c.move(node.do("CLUSTER KEYSLOT {b1}").(int64), 0, 1)
	time.Sleep(6 * time.Second) // longer than the leases
	for _, hold := range append(holds, moves) {
		must(0, hold.Err())
		must(0, hold.Release(ctx))
	}
	got := soon(t, "the wait at the new node", wait)
	must(0, got.err)
	if c.nodes[1].do("EXISTS {b1}moves") != int64(1) {
		t.Error("it is not at the new node")
	}
	must(0, got.hold.Release(ctx))
	if locks.Backend() != "functions" {
		t.Error(locks.Backend())
	}
}

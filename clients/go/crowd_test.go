package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rlock "rlock.invalid/clients/go"
)

func TestThousandWaitsForOneKey(t *testing.T) {
	s := startServer(t)
	locks := s.locks()
	first := must(locks.Lock(ctx, "jobs"))
	var group sync.WaitGroup
	var inside, last atomic.Int64
	for range 1000 {
		group.Go(func() {
			err := locks.Do(ctx, "jobs", func(_ context.Context, hold *rlock.Hold) error {
				if inside.Add(1) > 1 || last.Swap(hold.Token) >= hold.Token {
					t.Error("not alone, or a token that does not rise")
				}
				inside.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	s.waiting("jobs", 1000)
	must(0, first.Release(ctx))
	group.Wait()
	s.free("jobs")
}

// 10,000 holds and 10,000 waits on one connection, which then breaks.
func TestManyOnOneConnection(t *testing.T) {
	const n = 10_000
	s := startServer(t)
	locks := s.locks()
	holds := make([]*rlock.Hold, n)
	var group sync.WaitGroup
	for from := range 100 {
		group.Go(func() {
			for i := from; i < n; i += 100 {
				holds[i] = must(locks.TryLock(ctx, fmt.Sprint("k:", i), rlock.Lease(time.Minute)))
			}
		})
	}
	group.Wait()
	var granted atomic.Int64
	waits, cancel := context.WithCancel(ctx)
	for i := range n {
		group.Go(func() {
			hold, err := locks.Lock(waits, fmt.Sprint("k:", i))
			if err == nil {
				granted.Add(1)
				err = hold.Release(ctx)
			} else if errors.Is(err, context.Canceled) {
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	waiting := func() (sum int64) {
		for _, one := range s.do("RLOCK.TOP COUNT 10000").([]any) {
			sum += one.(map[any]any)["waiters"].(int64)
		}
		return
	}
	until(t, "all to wait", func() bool { return waiting() == n })
	s.do("CLIENT KILL TYPE pubsub")
	for _, hold := range holds {
		soon(t, "the loss", hold.Lost())
	}
	until(t, "all to be granted", func() bool { return granted.Load() == n })
	cancel()
	group.Wait()
	until(t, "all to be free", func() bool { return s.do("DBSIZE") == int64(0) })
}

// Whatever is cut while programs come and go, nothing stays behind.
func TestStorm(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	end := time.Now().Add(3 * time.Second)
	var group sync.WaitGroup
	var done atomic.Int64
	for range 3 {
		locks := locksAt(t, p.Addr().String())
		for i := range 24 {
			group.Go(func() {
				for n := 0; time.Now().Before(end); n++ {
					key := (i + n) % 4
					patience, cancel := context.WithTimeout(ctx, time.Duration(n%7*20+1)*time.Millisecond)
					hold, err := locks.Lock(patience, fmt.Sprint("storm:", key), rlock.Lease(time.Minute))
					cancel()
					if err != nil {
						continue
					}
					hold.Release(ctx)
					done.Add(1)
				}
			})
		}
	}
	words := []string{"RLOCK.ACQUIRE", "RLOCK.RELEASE", "RLOCK.CANCEL"}
	for i := 0; time.Now().Before(end); i++ {
		p.cutNext(words[i%len(words)])
		time.Sleep(50 * time.Millisecond)
	}
	group.Wait()
	p.cutNext("")
	until(t, "all to be free", func() bool { return s.do("DBSIZE") == int64(0) })
	for i := range 4 {
		s.waiting(fmt.Sprint("storm:", i), 0)
	}
	t.Log(done.Load(), " holds")
}

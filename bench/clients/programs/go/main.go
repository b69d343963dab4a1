// The benchmark's program in Go: bench SIDE PORT WORKERS. Its orders stand in
// bench/clients/language.rs.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	rlock "github.com/rlock/rlock/clients/go"
)

const key, last = "bench:lock", "bench:last"

type program struct {
	side    string
	workers int
	client  *redis.Client
	locks   *rlock.Locks
	count   atomic.Int64
	ctx     context.Context
	stop    context.CancelFunc
	crowd   []*rlock.Hold
}

func newClient(port string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
}

func main() {
	workers, _ := strconv.Atoi(os.Args[3])
	p := &program{side: os.Args[1], workers: workers, client: newClient(os.Args[2])}
	p.ctx, p.stop = context.WithCancel(context.Background())
	if p.side == "rlock" {
		p.locks = rlock.New(p.client)
	}
	p.warmUp()
	fmt.Println("ready")
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		words := append(strings.Fields(orders.Text()), "0")
		number, _ := strconv.Atoi(words[1])
		fmt.Println(p.do(words[0], number))
	}
}

func (p *program) warmUp() {
	own := "warm:" + strconv.Itoa(os.Getpid())
	if p.side == "rlock" {
		hold, err := p.locks.TryLock(p.ctx, own)
		must(err)
		must(hold.Release(p.ctx))
		return
	}
	mutex := redsync.New(goredis.NewPool(p.client)).NewMutex(own)
	must(mutex.Lock())
	_, err := mutex.Unlock()
	must(err)
}

func (p *program) do(order string, number int) int64 {
	switch order {
	case "go":
		for n := range p.workers {
			me := fmt.Sprintf("%d:%d", os.Getpid(), n)
			if p.side == "rlock" {
				go p.ours(me)
			} else {
				go p.redsync(me)
			}
		}
		return 0
	case "count":
		return p.count.Load()
	case "stop":
		p.stop()
		return 0
	case "pairs":
		return timed(number, func() {
			hold, err := p.locks.TryLock(p.ctx, "bench:free")
			must(err)
			must(hold.Release(p.ctx))
		})
	case "pings":
		connection := p.client.Conn()
		return timed(number, func() { must(connection.Ping(p.ctx).Err()) })
	case "crowd":
		return p.holdAndWait(number)
	}
	panic(order)
}

// One session for all workers.
func (p *program) ours(me string) {
	for p.ctx.Err() == nil {
		hold, err := p.locks.Lock(p.ctx, key)
		must(err)
		p.held(p.client, me)
		must(hold.Release(p.ctx))
	}
}

// It is a hand-over if another worker had it before.
func (p *program) held(client *redis.Client, me string) {
	before, err := client.SetArgs(p.ctx, last, me, redis.SetArgs{Get: true}).Result()
	if err != redis.Nil {
		must(err)
	}
	if before != me {
		p.count.Add(1)
	}
}

// A client for each worker, with redsync's defaults.
func (p *program) redsync(me string) {
	client := newClient(p.client.Options().Addr[len("127.0.0.1:"):])
	sync := redsync.New(goredis.NewPool(client))
	for p.ctx.Err() == nil {
		mutex := sync.NewMutex(key)
		// It may have tried as often as it does.
		if mutex.LockContext(p.ctx) == nil {
			p.held(client, me)
			mutex.UnlockContext(p.ctx)
		}
	}
}

func (p *program) holdAndWait(size int) int64 {
	other := rlock.New(p.client)
	take := func(locks *rlock.Locks, name string) {
		var group sync.WaitGroup
		var mutex sync.Mutex
		for n := range size {
			group.Add(1)
			go func() {
				defer group.Done()
				hold, err := locks.TryLock(p.ctx, name+strconv.Itoa(n))
				must(err)
				mutex.Lock()
				p.crowd = append(p.crowd, hold)
				mutex.Unlock()
			}()
		}
		group.Wait()
	}
	take(other, "taken:")
	before := memory()
	take(p.locks, "held:")
	for n := range size {
		go p.locks.Lock(p.ctx, "taken:"+strconv.Itoa(n))
	}
	queued := fmt.Sprintf("rlock_queued:%d\r", size)
	for !strings.Contains(p.client.Info(p.ctx, "rlock").Val(), queued) {
		time.Sleep(10 * time.Millisecond)
	}
	return (memory() - before) / int64(2*size)
}

// Resident, after a collection.
func memory() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	must(err)
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	must(err)
	return pages * int64(os.Getpagesize())
}

// ns for each.
func timed(ms int, act func()) int64 {
	begin := time.Now()
	var done int64
	for time.Since(begin) < time.Duration(ms)*time.Millisecond {
		act()
		done++
	}
	return time.Since(begin).Nanoseconds() / done
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The benchmark's program in Go: bench SIDE PORT WORKERS TURNS MS. Its orders
// stand in bench/clients/language.rs.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	rlock "rlock.invalid/clients/go"
)

const (
	key    = "bench:lock"
	shared = "bench:shared"
)

type program struct {
	ours   bool
	port   string
	crew   []worker
	client *redis.Client
	locks  *rlock.Locks
	ctx    context.Context
	mutex  sync.Mutex
	had    []turn
	crowd  []*rlock.Hold
}

// A worker has one turn with a lock, in which it acts.
type worker func(key string, act func())

type turn struct{ number, acquired, released int64 }

func newClient(port string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
}

func main() {
	var numbers [4]int
	for n, word := range os.Args[2:] {
		var err error
		numbers[n], err = strconv.Atoi(word)
		must(err)
	}
	workers, turns, ms := numbers[1], numbers[2], numbers[3]
	port := os.Args[2]
	p := &program{ours: os.Args[1] == "rlock", port: port, client: newClient(port), ctx: context.Background()}
	if p.ours {
		p.locks = rlock.New(p.client)
	}
	for range workers {
		p.crew = append(p.crew, p.worker())
	}
	p.warmUp(turns, ms)
	fmt.Println("ready")
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		words := append(strings.Fields(orders.Text()), "0", "0")
		number, _ := strconv.Atoi(words[1])
		second, _ := strconv.Atoi(words[2])
		if words[0] == "turns" {
			fmt.Println(p.turns())
		} else {
			fmt.Println(p.do(words[0], number, second))
		}
	}
}

func (p *program) warmUp(turns, ms int) {
	own := "warm:" + strconv.Itoa(os.Getpid())
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	var left atomic.Int64
	left.Store(int64(turns))
	var two sync.WaitGroup
	for _, have := range []worker{p.crew[0], p.worker()} {
		two.Go(func() {
			for left.Load() > 0 && time.Now().Before(end) {
				have(own, func() { left.Add(-1) })
			}
		})
	}
	two.Wait()
}

func (p *program) worker() worker {
	if p.ours {
		return p.rlock
	}
	return p.redsync()
}

// One session for all workers.
func (p *program) rlock(key string, act func()) {
	hold, err := p.locks.Lock(p.ctx, key)
	must(err)
	act()
	must(hold.Release(p.ctx))
}

// A client for each worker, with redsync's defaults.
func (p *program) redsync() worker {
	sync := redsync.New(goredis.NewPool(newClient(p.port)))
	return func(key string, act func()) {
		mutex := sync.NewMutex(key)
		// It may have tried as often as it does.
		if mutex.Lock() == nil {
			act()
			mutex.Unlock()
		}
	}
}

func (p *program) contend(number int, have worker) {
	for {
		have(key, func() {
			p.mutex.Lock()
			p.had = append(p.had, turn{int64(number), clock(), clock()})
			p.mutex.Unlock()
		})
	}
}

func (p *program) turns() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var line strings.Builder
	for _, one := range p.had {
		fmt.Fprint(&line, one.number, " ", one.acquired, " ", one.released, " ")
	}
	return line.String()
}

// It is the same for all processes.
func clock() int64 {
	var time unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &time))
	return time.Nano()
}

func (p *program) do(order string, number, second int) int64 {
	switch order {
	case "go":
		for n, have := range p.crew {
			go p.contend(n, have)
		}
		return 0
	case "pairs":
		if !p.ours {
			return timed(number, func() { p.crew[0]("bench:other", func() {}) })
		}
		return timed(number, func() {
			hold, err := p.locks.TryLock(p.ctx, "bench:free")
			must(err)
			must(hold.Release(p.ctx))
		})
	case "pings":
		connection := p.client.Conn()
		return timed(number, func() { must(connection.Ping(p.ctx).Err()) })
	case "uses":
		sticky, err := p.locks.Sticky("bench:sticky")
		must(err)
		body := func(*rlock.Use) error { return nil }
		return timed(number, func() { must(sticky.Use(p.ctx, body)) })
	case "sets":
		connection := p.client.Conn()
		return timed(number, func() {
			must(connection.SetNX(p.ctx, "bench:set", "owner", 10*time.Second).Err())
			must(connection.Del(p.ctx, "bench:set").Err())
		})
	case "often":
		turn := p.shared(number == 1)
		go func() {
			for {
				turn()
				time.Sleep(2 * time.Millisecond)
			}
		}()
		return 0
	case "shares":
		turn := p.shared(number == 1)
		return middle(second, 2*time.Millisecond, func() int64 {
			begin := time.Now()
			turn()
			return time.Since(begin).Nanoseconds()
		})
	case "takes":
		return middle(number, 10*time.Millisecond, func() int64 {
			begin := time.Now()
			hold, err := p.locks.Lock(p.ctx, shared)
			took := time.Since(begin).Nanoseconds()
			must(err)
			must(hold.Release(p.ctx))
			return took
		})
	case "crowd":
		return p.holdAndWait(number)
	}
	panic(order)
}

// How the lock that others want too is taken and released.
func (p *program) shared(sticky bool) func() {
	if !sticky {
		return func() { p.rlock(shared, func() {}) }
	}
	lock, err := p.locks.Sticky(shared)
	must(err)
	return func() { must(lock.Use(p.ctx, func(*rlock.Use) error { return nil })) }
}

// The median, with a pause behind each.
func middle(count int, pause time.Duration, act func() int64) int64 {
	took := make([]int64, count)
	for n := range took {
		took[n] = act()
		time.Sleep(pause)
	}
	slices.Sort(took)
	return took[count/2]
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

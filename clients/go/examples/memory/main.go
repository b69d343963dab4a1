// Prints what holds and waits cost in memory: go run ./examples/memory [ADDR [N]]
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

func memory() (heap, stacks uint64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse
}

func main() {
	addr, n := "localhost:6379", 10_000
	if len(os.Args) > 1 {
		addr = os.Args[1]
	}
	if len(os.Args) > 2 {
		n, _ = strconv.Atoi(os.Args[2])
	}
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: addr})
	locks := rlock.New(client)
	warm, err := locks.Lock(ctx, "memory:warm")
	if err != nil {
		log.Fatal(err)
	}
	warm.Release(ctx)
	holds := make([]*rlock.Hold, n)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("memory:", i)
	}

	// Many at a time, for one after the other takes as many round trips.
	parallel := func(do func(i int)) time.Duration {
		began := time.Now()
		var group sync.WaitGroup
		for from := range 100 {
			group.Go(func() {
				for i := from; i < n; i += 100 {
					do(i)
				}
			})
		}
		group.Wait()
		return time.Since(began)
	}
	heap, stacks := memory()
	print := func(what string, took time.Duration) {
		now, nowStacks := memory()
		fmt.Printf("%-18s heap %5d bytes each, stacks %5d bytes each, in %v\n", what, int64(now-heap)/int64(n),
			(int64(nowStacks)-int64(stacks))/int64(n), took.Round(time.Millisecond))
		heap, stacks = now, nowStacks
	}
	must := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	took := parallel(func(i int) {
		var err error
		holds[i], err = locks.TryLock(ctx, keys[i])
		must(err)
	})
	print(fmt.Sprint(n, " holds"), took)

	waits := make([]*rlock.Hold, n)
	var group sync.WaitGroup
	began := time.Now()
	for i := range n {
		group.Go(func() {
			var err error
			waits[i], err = locks.Lock(ctx, keys[i])
			must(err)
		})
	}
	for waiting := int64(0); waiting < int64(n); time.Sleep(20 * time.Millisecond) {
		waiting = 0
		top, err := client.Do(ctx, "RLOCK.TOP", "COUNT", n).Slice()
		must(err)
		for _, one := range top {
			waiting += one.(map[any]any)["waiters"].(int64)
		}
	}
	print(fmt.Sprint(n, " waits"), time.Since(began))

	began = time.Now()
	parallel(func(i int) { must(holds[i].Release(ctx)) })
	group.Wait()
	fmt.Printf("%-18s in %v\n", "handed over", time.Since(began).Round(time.Millisecond))
	parallel(func(i int) { must(waits[i].Release(ctx)) })
	must(locks.Close())
	must(client.Close())
}

// The first program of the README.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: cmp.Or(os.Getenv("RLOCK_ADDR"), "localhost:6379")})
	defer client.Close()
	locks := rlock.New(client) // once for each process
	defer locks.Close()

	err := locks.Do(context.Background(), "jobs:nightly", func(ctx context.Context, hold *rlock.Hold) error {
		fmt.Println("nobody else has", hold.Key)
		return work(ctx, hold.Token)
	}, rlock.Wait(10*time.Second))

	switch {
	case err == nil:
		fmt.Println("done")
	case errors.Is(err, rlock.ErrNotAcquired):
		fmt.Println("somebody else has it")
	case errors.Is(err, rlock.ErrLost):
		log.Fatal("was not alone all the time: ", err)
	default:
		log.Fatal(err)
	}
}

// work ends when ctx does, and its storage refuses a smaller token than it has seen.
func work(ctx context.Context, token int64) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

// exampleAddr is where the server of the examples is.
var exampleAddr string

// outside stands for the test where there is none.
type outside struct {
	testing.TB
	dir      string
	cleanups []func()
}

func (*outside) Helper()             {}
func (*outside) Fatal(words ...any)  { log.Fatal(words...) }
func (o *outside) TempDir() string   { return o.dir }
func (o *outside) Cleanup(do func()) { o.cleanups = append(o.cleanups, do) }

func TestMain(m *testing.M) {
	if addr := os.Getenv("RLOCK_HOLDS"); addr != "" {
		hold(addr) // for another test process
		return
	}
	o := &outside{dir: must(os.MkdirTemp("", "rlock"))}
	exampleAddr = startServer(o).addr()
	code := m.Run()
	for _, do := range o.cleanups {
		do()
	}
	os.RemoveAll(o.dir)
	os.Exit(code)
}

// connect stands for the client that a program has.
func connect() *redis.Client { return redis.NewClient(&redis.Options{Addr: exampleAddr}) }

func TestFirstProgram(t *testing.T) {
	s := startServer(t)
	command := exec.Command("go", "run", "./examples/first")
	command.Env = append(os.Environ(), "RLOCK_ADDR="+s.addr())
	command.Stderr = os.Stderr
	if out := string(must(command.Output())); out != "nobody else has jobs:nightly\ndone\n" {
		t.Fatal(out)
	}
}

func ExampleLocks_Do() {
	locks := rlock.New(connect())
	defer locks.Close()

	err := locks.Do(context.Background(), "jobs", func(ctx context.Context, hold *rlock.Hold) error {
		fmt.Println("at work, with a token:", hold.Token > 0)
		return ctx.Err() // ends when the lock is lost
	}, rlock.Wait(10*time.Second))
	fmt.Println(err)
	// Output:
	// at work, with a token: true
	// <nil>
}

func ExampleLocks_TryLock() {
	ctx := context.Background()
	locks := rlock.New(connect())
	defer locks.Close()

	hold, err := locks.TryLock(ctx, "jobs")
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release(ctx)

	_, err = locks.TryLock(ctx, "jobs")
	fmt.Println(err)
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	// Output:
	// rlock: jobs: this program has it itself
	// true
}

// The end of the context ends the wait, here and on the server.
func ExampleLocks_Lock() {
	ctx := context.Background()
	locks := rlock.New(connect())
	defer locks.Close()
	hold, err := locks.Lock(ctx, "jobs")
	if err != nil {
		log.Fatal(err)
	}

	patience, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = locks.Lock(patience, "jobs")
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	fmt.Println(hold.Release(ctx))
	// Output:
	// true
	// <nil>
}

// A hold that is lost says so, and its release does.
func ExampleHold_Lost() {
	ctx := context.Background()
	client := connect()
	locks := rlock.New(client)
	defer locks.Close()
	hold, err := locks.Lock(ctx, "jobs")
	if err != nil {
		log.Fatal(err)
	}

	client.Do(ctx, "RLOCK.FORCE", "jobs") // an operator

	<-hold.Lost()
	fmt.Println(hold.Err())
	var lost *rlock.LostError
	fmt.Println(errors.As(hold.Release(ctx), &lost), lost.Reason)
	// Output:
	// rlock: jobs was lost: forced
	// true forced
}

// A long job stops between two pieces when somebody waits for its lock.
func ExampleHold_Wanted() {
	locks := rlock.New(connect())
	defer locks.Close()
	pages := []string{"one", "two", "three"}

	err := locks.Do(context.Background(), "index", func(ctx context.Context, hold *rlock.Hold) error {
		for _, page := range pages {
			fmt.Println("written:", page)
			if hold.Wanted() {
				break // somebody waits: the rest is for the next time
			}
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// written: one
	// written: two
	// written: three
	// <nil>
}

// A long job lets whoever waits in between two pieces, and goes on behind them.
func ExampleHold_GiveWay() {
	locks := rlock.New(connect())
	defer locks.Close()
	pages := []string{"one", "two", "three"}

	err := locks.Do(context.Background(), "index", func(ctx context.Context, hold *rlock.Hold) error {
		for _, page := range pages {
			fmt.Println("written:", page)
			if _, err := hold.GiveWay(ctx); err != nil { // at once, unless somebody waits
				return err
			}
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// written: one
	// written: two
	// written: three
	// <nil>
}

// The second use costs no message.
func ExampleLocks_Sticky() {
	ctx := context.Background()
	locks := rlock.New(connect())
	defer locks.Close()
	tenant, err := locks.Sticky("tenant:7") // once
	if err != nil {
		log.Fatal(err)
	}

	for range 2 {
		err = tenant.Use(ctx, func(use *rlock.Use) error {
			fmt.Println("nobody else has", use.Key)
			return use.Context().Err() // ends when the lock is lost
		})
		fmt.Println(err)
	}
	// Output:
	// nobody else has tenant:7
	// <nil>
	// nobody else has tenant:7
	// <nil>
}

func ExampleLocks_Job() {
	ctx := context.Background()
	locks := rlock.New(connect())
	defer locks.Close()

	job := locks.Job()
	from, err := job.Lock(ctx, "account:1")
	if err != nil {
		log.Fatal(err)
	}
	defer from.Release(ctx)
	to, err := job.Lock(ctx, "account:2") // fails with ErrDeadlock rather than wait for ever
	if err != nil {
		log.Fatal(err)
	}
	defer to.Release(ctx)

	_, err = job.Lock(ctx, "account:1")
	fmt.Println(errors.Is(err, rlock.ErrHeldByJob))
	// Output: true
}

func ExampleLocks_LockMany() {
	ctx := context.Background()
	locks := rlock.New(connect())
	defer locks.Close()

	hold, err := locks.LockMany(ctx, []string{"account:1", "account:2"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hold.Keys())
	fmt.Println(hold.Release(ctx))
	// Output:
	// [account:1 account:2]
	// <nil>
}

func ExampleRead() {
	ctx := context.Background()
	locks := rlock.New(connect())
	defer locks.Close()

	one, err := locks.Lock(ctx, "config", rlock.Read())
	if err != nil {
		log.Fatal(err)
	}
	defer one.Release(ctx)
	two, err := locks.Lock(ctx, "config", rlock.Read())
	if err != nil {
		log.Fatal(err)
	}
	defer two.Release(ctx)

	_, err = locks.TryLock(ctx, "config", rlock.Write())
	fmt.Println(err)
	// Output: rlock: config: this program has it itself
}

func ExampleLimit() {
	ctx := context.Background()
	locks := rlock.New(connect())
	defer locks.Close()

	for range 3 {
		hold, err := locks.TryLock(ctx, "gpu", rlock.Limit(2))
		if err != nil {
			fmt.Println(err)
			continue
		}
		defer hold.Release(ctx)
		fmt.Println("has one")
	}
	// Output:
	// has one
	// has one
	// rlock: gpu: this program has it itself
}

// The README quotes what is tried here.
func TestReadmeQuotes(t *testing.T) {
	readme := string(must(os.ReadFile("README.md")))
	program := string(must(os.ReadFile("examples/first/main.go")))
	if !strings.Contains(readme, program[strings.Index(program, "package main"):]) {
		t.Error("the README's first program is not examples/first/main.go")
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	rlock "rlock.invalid/clients/go"
)

var needs = []string{"read_write", "permits", "many", "job", "again", "acks", "max", "scope", "notified", "cluster", "callback", "threads", "tight", "backend", "patience", "wanted", "give_way",
	"sticky", "use_within", "use_cancel"}

// taker is what Locks and Job have in common.
type taker interface {
	TryLock(context.Context, string, ...rlock.Option) (*rlock.Hold, error)
	Lock(context.Context, string, ...rlock.Option) (*rlock.Hold, error)
	LockMany(context.Context, []string, ...rlock.Option) (*rlock.Hold, error)
	Do(context.Context, string, func(context.Context, *rlock.Hold) error, ...rlock.Option) error
}

func (d *driver) taker(r *request, locks *rlock.Locks) taker {
	if r.Job == "" {
		return locks
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	name := r.Locks + " " + r.Job
	if d.jobs[name] == nil {
		d.jobs[name] = locks.Job()
	}
	return d.jobs[name]
}

func options(r *request) []rlock.Option {
	var opts []rlock.Option
	add := func(is bool, opt func() rlock.Option) {
		if is {
			opts = append(opts, opt())
		}
	}
	add(r.Lease != nil, func() rlock.Option { return rlock.Lease(ms(*r.Lease)) })
	add(r.Watchdog != nil && !*r.Watchdog, rlock.NoWatchdog)
	add(r.Max != nil, func() rlock.Option { return rlock.Max(ms(*r.Max)) })
	add(r.Mode == "read", rlock.Read)
	add(r.Mode == "write", rlock.Write)
	add(r.Limit != nil, func() rlock.Option { return rlock.Limit(*r.Limit) })
	add(r.Permits != nil, func() rlock.Option { return rlock.Permits(*r.Permits) })
	acks := time.Second
	if r.AcksMs != nil {
		acks = ms(*r.AcksMs)
	}
	add(r.Acks != nil, func() rlock.Option { return rlock.Acks(*r.Acks, acks) })
	return opts
}

func waits(r *request) []rlock.Option {
	switch {
	case r.Wait == nil:
		return append(options(r), rlock.Wait(0))
	case *r.Wait == -1:
		return options(r)
	}
	return append(options(r), rlock.Wait(ms(*r.Wait)))
}

func (d *driver) acquire(ctx context.Context, r *request, locks *rlock.Locks) (map[string]any, error) {
	var hold *rlock.Hold
	var err error
	by := d.taker(r, locks)
	switch {
	case r.Keys != nil:
		hold, err = by.LockMany(ctx, r.Keys, waits(r)...)
	case r.Wait == nil:
		hold, err = by.TryLock(ctx, r.Key, options(r)...)
	default:
		hold, err = by.Lock(ctx, r.Key, waits(r)...)
	}
	if err != nil {
		return nil, err
	}
	d.mutex.Lock()
	d.holds[r.Hold] = hold
	d.mutex.Unlock()
	d.watch(r.Hold, hold)
	return map[string]any{"token": hold.Token, "owner": hold.Owner}, nil
}

func giveWay(ctx context.Context, r *request, hold *rlock.Hold) (map[string]any, error) {
	var opts []rlock.Option
	if r.Wait != nil {
		opts = append(opts, rlock.Wait(ms(*r.Wait)))
	}
	if r.Least != nil {
		opts = append(opts, rlock.Least(ms(*r.Least)))
	}
	gave, err := hold.GiveWay(ctx, opts...)
	return map[string]any{"gave": gave, "token": hold.Token, "owner": hold.Owner}, err
}

// watch reports the loss. Its goroutine ends with the process where there is none.
func (d *driver) watch(name string, hold *rlock.Hold) {
	go func() {
		<-hold.Lost()
		var lost *rlock.LostError
		errors.As(hold.Err(), &lost)
		d.say(map[string]any{"event": "lost", "hold": name, "reason": lost.Reason})
	}()
}

// callback has the program's own goroutine do something when the hold is lost.
func (d *driver) callback(r *request, locks *rlock.Locks, hold *rlock.Hold) {
	ctx := context.Background()
	does := func() error {
		d.mutex.Lock()
		other := d.holds[r.Of]
		d.mutex.Unlock()
		switch r.Does {
		case "release":
			return other.Release(ctx)
		case "renew":
			return other.Renew(ctx, 10*time.Second)
		case "acquire":
			again := *r
			again.Hold = r.Of
			_, err := d.acquire(ctx, &again, locks)
			return err
		case "close":
			return locks.Close()
		case "block":
			time.Sleep(ms(r.Ms))
		}
		return nil
	}
	go func() {
		<-hold.Lost()
		d.say(map[string]any{"event": "callback", "hold": r.Hold, "begun": r.Does})
		said := map[string]any{"event": "callback", "hold": r.Hold, "end": "ok"}
		if err := does(); err != nil {
			said["end"], said["text"] = word(err), err.Error()
		}
		d.say(said)
	}()
}

func (d *driver) scope(ctx context.Context, r *request, locks *rlock.Locks) (map[string]any, error) {
	end := "done"
	work := func(ctx context.Context, hold *rlock.Hold) error {
		d.mutex.Lock()
		d.holds[r.Hold] = hold
		d.mutex.Unlock()
		d.watch(r.Hold, hold)
		select {
		case <-ctx.Done():
			end = "stopped"
		case <-time.After(ms(r.Body)):
		}
		if r.Fail {
			return errors.New("the body's own error")
		}
		return nil
	}
	err := d.taker(r, locks).Do(ctx, r.Key, work, waits(r)...)
	if end == "stopped" && errors.Is(err, rlock.ErrLost) {
		err = nil
	}
	return map[string]any{"body": end}, err
}

func (d *driver) count(ctx context.Context, r *request, locks *rlock.Locks) (map[string]any, error) {
	d.mutex.Lock()
	sticky := d.stickies[r.Sticky]
	d.mutex.Unlock()
	return counts(ms(r.For), func(work func() error) error {
		if r.Key == "" {
			return sticky.Use(ctx, func(*rlock.Use) error { return work() })
		}
		hold, err := locks.Lock(ctx, r.Key, waits(r)...)
		if err != nil {
			return err
		}
		if err := work(); err != nil {
			return err
		}
		return hold.Release(ctx)
	}, r.File)
}

// addOne writes one more than it reads.
func addOne(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil && len(text) > 0 {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o644)
}

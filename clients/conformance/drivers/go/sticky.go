package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	rlock "rlock.invalid/clients/go"
)

func (d *driver) sticky(r *request, locks *rlock.Locks) error {
	var opts []rlock.Option
	if r.Idle != nil {
		opts = append(opts, rlock.Idle(ms(*r.Idle)))
	}
	if r.Wait != nil {
		opts = append(opts, rlock.Wait(ms(*r.Wait)))
	}
	if r.Lease != nil {
		opts = append(opts, rlock.Lease(ms(*r.Lease)))
	}
	sticky, err := locks.Sticky(r.Key, opts...)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.stickies[r.Sticky] = sticky
	return err
}

// A body is that of a use: it goes on in its goroutine until it is told to end.
type body struct {
	cancel context.CancelFunc
	told   chan func() (ends bool, err error)
	use    *rlock.Use
	ended  chan error
}

func (d *driver) body(name string) *body {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.uses[name]
}

// use begins one: in a goroutine of its own, or, by the body of another, with the context of that.
func (d *driver) use(r *request) (map[string]any, error) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &body{cancel: cancel, told: make(chan func() (bool, error)), ended: make(chan error, 1)}
	d.mutex.Lock()
	d.uses[r.Use] = b
	sticky := d.stickies[r.Sticky]
	d.mutex.Unlock()
	begun := make(chan map[string]any, 1)
	run := func(ctx context.Context) {
		defer cancel()
		b.ended <- sticky.Use(ctx, func(use *rlock.Use) error {
			b.use = use
			ok := map[string]any{"owner": use.Owner}
			if r.Token {
				token, err := use.Token(ctx)
				if err != nil {
					return err
				}
				ok["token"] = token
			}
			begun <- ok
			for {
				select {
				case act := <-b.told:
					if ends, err := act(); ends {
						return err
					}
				case <-d.over:
					return nil
				}
			}
		})
	}
	if r.Within != nil {
		var outer string
		if err := json.Unmarshal(r.Within, &outer); err != nil {
			return nil, err
		}
		by := d.body(outer)
		by.told <- func() (bool, error) {
			run(by.use.Context())
			return false, nil
		}
	} else {
		go run(ctx)
	}
	select {
	case ok := <-begun:
		return ok, nil
	case err := <-b.ended:
		return nil, err
	}
}

// by has the body do it.
func (b *body) by(act func() (map[string]any, error)) (ok map[string]any, err error) {
	done := make(chan struct{})
	b.told <- func() (bool, error) {
		defer close(done)
		ok, err = act()
		return false, nil
	}
	<-done
	return ok, err
}

func (d *driver) useToken(r *request) (map[string]any, error) {
	b := d.body(r.Use)
	return b.by(func() (map[string]any, error) {
		token, err := b.use.Token(context.Background())
		return map[string]any{"token": token}, err
	})
}

func (d *driver) useState(r *request) (map[string]any, error) {
	var lost *rlock.LostError
	if errors.As(d.body(r.Use).use.Err(), &lost) {
		return map[string]any{"lost": lost.Reason}, nil
	}
	return map[string]any{"lost": nil}, nil
}

func (d *driver) useEnd(r *request) error {
	b := d.body(r.Use)
	var own error
	if r.Fail {
		own = errors.New("the body's own error")
	}
	b.told <- func() (bool, error) { return true, own }
	return <-b.ended
}

func useMany(ctx context.Context, r *request, sticky *rlock.Sticky) (map[string]any, error) {
	ok, last := map[string]any{"done": r.Times}, int64(0)
	if r.Token {
		ok["rising"] = true
	}
	for range r.Times {
		err := sticky.Use(ctx, func(use *rlock.Use) error {
			if !r.Token {
				return nil
			}
			token, err := use.Token(ctx)
			if token <= last {
				ok["rising"] = false
			}
			last = token
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return ok, nil
}

// counts has work done again and again, for so long.
func counts(d time.Duration, work func(func() error) error, file string) (map[string]any, error) {
	done := 0
	for end := time.Now().Add(d); time.Now().Before(end); {
		err := work(func() error { return addOne(file) })
		if err != nil {
			if errors.Is(err, rlock.ErrNotAcquired) {
				continue
			}
			return nil, fmt.Errorf("after %d: %w", done, err)
		}
		done++
	}
	return map[string]any{"done": done}, nil
}

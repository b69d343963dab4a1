package rlock

import (
	"fmt"
	"time"
)

// An Option says how a lock is acquired.
type Option func(*terms)

type mode uint8

const (
	plain mode = iota
	read
	write
	limited
)

// terms are what a request asks for.
type terms struct {
	mode     mode
	modes    uint8 // how many modes were named
	watchdog bool
	bounded  bool // wait counts
	gives    bool // an option was given that is for GiveWay alone
	sticks   bool // one that is for Sticky alone
	limit    int
	permits  int
	acks     int
	ackTime  time.Duration
	wait     time.Duration
	lease    time.Duration
	max      time.Duration
	least    time.Duration
	idle     time.Duration
	err      error
}

func (t *terms) is(m mode) {
	t.mode = m
	t.modes++
}

func (t *terms) positive(what string, d time.Duration) {
	if d <= 0 {
		t.err = fmt.Errorf("%w: %s is %v", ErrArgument, what, d)
	}
}

// Wait bounds how long Lock and Do wait; then they fail with [ErrNotAcquired]. Wait(0) tries
// once. Without it they wait as long as their context.
func Wait(d time.Duration) Option {
	return func(t *terms) {
		t.wait, t.bounded = d, true
		if d < 0 {
			t.err = fmt.Errorf("%w: Wait(%v)", ErrArgument, d)
		}
	}
}

// Read takes the lock beside other readers.
func Read() Option { return func(t *terms) { t.is(read) } }

// Write takes a lock that others take with [Read] for one alone.
func Write() Option { return func(t *terms) { t.is(write) } }

// Limit takes a permit of a lock that has n of them. All users of the lock give the same n.
func Limit(n int) Option {
	return func(t *terms) {
		t.is(limited)
		t.limit = n
	}
}

// Permits takes k permits at once, with [Limit]. Without it, it is one.
func Permits(k int) Option {
	return func(t *terms) {
		t.permits = k
		if k < 1 {
			t.err = fmt.Errorf("%w: Permits(%d)", ErrArgument, k)
		}
	}
}

// Lease is how long the lock lives on when nobody renews it: 10 s by default. With
// the watchdog it is also how soon the loss of a frozen server is noticed.
func Lease(d time.Duration) Option {
	return func(t *terms) {
		t.lease = d
		t.positive("Lease", d)
	}
}

// NoWatchdog has the hold end with its lease, unless [Hold.Renew] is called before. It stays
// when the connection breaks; what became of it meanwhile is notified when there is one again.
func NoWatchdog() Option { return func(t *terms) { t.watchdog = false } }

// Max bounds a hold that the watchdog renews: then it is released, and lost.
func Max(d time.Duration) Option {
	return func(t *terms) {
		t.max = d
		t.positive("Max", d)
	}
}

// Acks gives the hold to the program when n replicas have it. If they do not within d it is
// released, and refused: NOREPLICAS.
func Acks(n int, d time.Duration) Option {
	return func(t *terms) {
		t.acks, t.ackTime = n, d
		t.positive("the time of Acks", d)
		if n < 1 {
			t.err = fmt.Errorf("%w: Acks(%d)", ErrArgument, n)
		}
	}
}

func newTerms(opts []Option) terms {
	t := terms{watchdog: true, lease: 10 * time.Second, least: leastAge, idle: most}
	for _, opt := range opts {
		opt(&t)
	}
	return t
}

// mostBytes is what all keys of a request may have: a server may be set to close a connection
// that sends 1 MB.
const mostBytes = 1 << 19

// check looks for what the server would refuse too, before anything is sent.
func (t *terms) check(keys []string) error {
	wrong := func(text string, words ...any) error {
		return fmt.Errorf("%w: "+text, append([]any{ErrArgument}, words...)...)
	}
	switch {
	case t.err != nil:
		return t.err
	case t.gives:
		return wrong("Least is for GiveWay")
	case t.sticks:
		return wrong("Idle is for Sticky")
	case t.modes > 1:
		return wrong("one of Read, Write and Limit")
	case t.mode == limited && (t.limit < 1 || t.limit > 1_000_000):
		return wrong("Limit(%d)", t.limit)
	case t.mode == limited && t.permits > t.limit:
		return wrong("Permits(%d) of %d", t.permits, t.limit)
	case t.mode != limited && t.permits != 0:
		return wrong("Permits goes with Limit")
	case t.max != 0 && !t.watchdog:
		return wrong("Max goes with the watchdog; without it Lease is the bound")
	case len(keys) < 1 || len(keys) > 1024:
		return wrong("%d keys; 1 to 1024", len(keys))
	case len(keys) > 1 && t.mode != plain:
		return wrong("several keys are plain locks")
	}
	if t.mode == limited && t.permits == 0 {
		t.permits = 1
	}
	seen, bytes := make(map[string]bool, len(keys)), 0
	for _, key := range keys {
		if bytes += len(key); key == "" {
			return wrong("a key is empty")
		}
		if len(keys) > 1 && seen[key] {
			return wrong("%q is there twice", key)
		}
		seen[key] = true
	}
	if bytes > mostBytes {
		return wrong("keys of %d bytes together; at most %d", bytes, mostBytes)
	}
	return nil
}

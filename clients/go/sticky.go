package rlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Sticky locks, as the program sees them. What happens beside a use is in stay.go.

// Idle is for [Locks.Sticky]: the lock goes back when its last use has ended so long ago: 1 s by default, which is the most.
func Idle(d time.Duration) Option {
	return func(t *terms) {
		t.idle, t.sticks = d, true
		if d <= 0 || d > most {
			t.err = fmt.Errorf("%w: Idle(%v); more than 0, and at most %v", ErrArgument, d, most)
		}
	}
}

// Sticky makes a lock that stays with these Locks between its uses, for call sites that take the same lock again and again and
// cannot hold it around a loop. A [Sticky.Use] of a lock that is here already costs no message.
//
// Others see it held as long as it is here, also while nobody uses it. It goes to whoever waits for it at the end of a
// use, and goes back when nobody has used it for [Idle], or when it was here for a second: who only tries is to have a chance.
//
// Its options are Idle, [Wait] (for how long each use waits: 30 s by default) and [Lease]. It is a plain lock with the watchdog.
func (l *Locks) Sticky(key string, opts ...Option) (*Sticky, error) {
	t := newTerms(opts)
	others := t
	others.wait, others.bounded, others.lease, others.idle, others.sticks, others.err = 0, false, newTerms(nil).lease, most, false, nil
	t.sticks = false
	if err := t.check([]string{key}); err != nil {
		return nil, err
	}
	if others != newTerms(nil) {
		return nil, fmt.Errorf("%w: Sticky has the options Idle, Wait and Lease", ErrArgument)
	}
	s := &Sticky{Key: key, key: key, locks: l, terms: t, wait: stickyWait}
	if t.bounded {
		s.wait = t.wait
	}
	s.terms.wait, s.terms.bounded = 0, false
	s.half = max(t.lease, leastLease) / 2
	s.proof.Store(&bound{})
	return s, nil
}

const stickyWait = 30 * time.Second

// A Use is what the body of [Sticky.Use] has of the lock. It is over when the body returns.
type Use struct {
	Key   string
	Owner string // that of the acquisition, which one use or many have had

	sticky *Sticky
	turn   *turn
	token  int64 // once the program has read it
	ctx    context.Context
	scope  atomic.Pointer[scope]
}

// A scope is the context of a use, once the program has asked for it.
type scope struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Use runs body while this process has the lock. Uses come one after the other, in the order in which they came; each waits
// as long as ctx, and the Wait of the lock, allow. Then it fails with [ErrNotAcquired], or the error of ctx.
//
// When the lock is lost meanwhile the context of the use ends (see [Use.Context]). Then Use waits for body to
// return, and fails with an error for which errors.Is(err, [ErrLost]) holds, joined with that of body.
//
// A Use within a use of the same lock would wait for itself: with the outer one's context that is an error at once, else when
// its time is over.
func (s *Sticky) Use(ctx context.Context, body func(use *Use) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u := &Use{Key: s.key, sticky: s, ctx: ctx}
	if !s.take(u) {
		if err := s.await(ctx, u); err != nil {
			return err
		}
	}
	returned := false
	defer func() {
		if !returned { // by a panic, or runtime.Goexit
			s.leave(u, thisMoment())
		}
	}()
	err := body(u)
	returned = true
	return joined(s.end(u), err)
}

// Close releases the lock, after the use that is under way. No use begins any more: they fail with [ErrClosed]. It waits for
// the server's answer to that, if no use is under way.
func (s *Sticky) Close() error {
	if gone := s.shut(); gone != nil {
		late := time.NewTimer(s.locks.timeout)
		defer late.Stop()
		select {
		case <-gone:
		case <-late.C: // it is retried on the next connection
		}
	}
	return nil
}

// Lost is closed when the lock is lost. [Use.Err] says why.
func (u *Use) Lost() <-chan struct{} {
	defer u.sticky.locks.lock()()
	return u.turn.gone()
}

// Err is nil, or a [*LostError] once the lock is lost.
func (u *Use) Err() error {
	defer u.sticky.locks.lock()()
	u.turn.look()
	return u.turn.loss()
}

// Context comes from that of the call of [Sticky.Use]. It ends when the lock is lost, with a [*LostError] as its cause, and with
// the use.
func (u *Use) Context() context.Context {
	if have := u.scope.Load(); have != nil {
		return have.ctx
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(u.ctx, u.sticky, u))
	if !u.scope.CompareAndSwap(nil, &scope{ctx, cancel}) {
		cancel(nil)
		return u.scope.Load().ctx
	}
	if err := u.Err(); err != nil {
		cancel(err)
	} else if u.sticky.user.Load() != u { // it has ended, or ends and sees this
		cancel(nil)
	}
	return ctx
}

// Token is a fencing token of this use, greater than those of all before it: storage refuses a smaller one than it has seen. The
// first use that asks for one since the lock was acquired has it at once, each other one by a round trip to the server. If that
// fails, with [ErrLost], [ErrRefused], [ErrConnection] or the error of ctx, this use has no token, and the lock goes back at its
// end.
func (u *Use) Token(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ended := ctx.Done()
	t := u.askToken()
	if t.done == nil {
		return t.token, t.err
	}
	answered := false
	defer func() {
		if !answered { // or ctx, which is the program's, has panicked
			u.sticky.forgoToken(t, context.Canceled)
		}
	}()
	t.read()
	late := time.NewTimer(u.sticky.locks.timeout)
	defer late.Stop()
	select {
	case <-t.done:
	case <-ended:
		u.sticky.forgoToken(t, ctx.Err())
	case <-late.C:
		u.sticky.forgoToken(t, &ConnectionError{errors.New("no answer to the renewal")})
	}
	answered = true
	return t.token, t.err
}

// stickyClosed is an ErrClosed.
type stickyClosed struct{ key string }

func (e *stickyClosed) Error() string        { return "rlock: the sticky lock of " + e.key + " is closed" }
func (e *stickyClosed) Is(target error) bool { return target == ErrClosed }

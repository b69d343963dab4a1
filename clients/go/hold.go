package rlock

import (
	"context"
	"slices"
	"time"
)

// A Hold is a lock that was acquired, or several by [Locks.LockMany].
type Hold struct {
	Token int64  // greater than that of every hold of the key before; for storage
	Key   string // of several the first
	Owner string

	locks *Locks
	turn  *turn
	next  *turn // while it gives way: what is to come of that
	// It gave way in vain: who called for that has the error.
	forgone bool
}

// Keys are all that it holds.
func (h *Hold) Keys() []string {
	defer h.locks.lock()()
	return slices.Clone(h.turn.keyList())
}

// Lost is closed when the hold is lost. [Hold.Err] says why.
func (h *Hold) Lost() <-chan struct{} {
	defer h.locks.lock()()
	return h.turn.gone()
}

// Err is nil, or a [*LostError] once the hold is lost.
func (h *Hold) Err() error {
	defer h.locks.lock()()
	h.turn.look()
	return h.turn.loss()
}

// Again is one more hold of the same by who has it: it needs one more Release.
func (h *Hold) Again() error {
	defer h.locks.lock()()
	err := h.turn.ended()
	if err == nil {
		h.turn.nested++
	}
	return err
}

// Release ends the hold, and waits until the server has answered, the connection breaks or
// ctx ends; it is over in any case. It fails with [ErrLost] if the hold was lost before.
// A second Release does nothing.
func (h *Hold) Release(ctx context.Context) error {
	locks := h.locks
	locks.mutex.Lock()
	turn := h.turn
	turn.look()
	if h.next != nil {
		h.next.abandon(&LostError{h.Key, "released"})
	}
	if h.forgone {
		locks.mutex.Unlock()
		return nil
	}
	if turn.reason != nil || turn.state != held {
		defer locks.mutex.Unlock()
		return turn.loss()
	}
	if turn.nested > 0 {
		turn.nested--
		locks.mutex.Unlock()
		return nil
	}
	done := make(chan error, 1)
	read := turn.session.led(func() {
		if turn.link != nil {
			defer turn.link.gather()()
		}
		turn.depart().await(done)
	})
	locks.mutex.Unlock()
	read()
	select {
	case err := <-done:
		return err
	default:
	}
	late := time.NewTimer(locks.timeout)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return nil // what has no answer is retried on the next connection
	}
}

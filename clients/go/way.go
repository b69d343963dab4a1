package rlock

import (
	"context"
	"fmt"
	"time"
)

// A hold gives way: it is released, and acquired anew behind whoever waits.

// So old a hold is at least, unless the program says otherwise.
const leastAge = 20 * time.Millisecond

// Least is for [Hold.GiveWay]: a hold that is younger than d does not give way. It is 20 ms by default.
func Least(d time.Duration) Option {
	return func(t *terms) {
		t.least, t.gives = d, true
		if d < 0 {
			t.err = fmt.Errorf("%w: Least(%v)", ErrArgument, d)
		}
	}
}

// GiveWay is for a long job, between two pieces of its work. If the hold is [Hold.Wanted], and not younger than
// [Least], it is released, and acquired again behind whoever waits. It waits for that as long as ctx, or [Wait], allows.
// Then it says true: the same hold has the lock again, with a new Token, a whole lease, and its Lost channel; [Max] is
// counted anew. (Its Owner is a new one too, unless it is of a job.) Else it says false, at once.
//
// In between the hold is over for all that use it: a Release ends the wait, with [ErrLost] for who gives way.
// If it fails, as a [Locks.Lock] may, the hold is over: lost, with the reason released, and its Release does nothing. A
// hold of LockMany, and one that needs more than one Release, is refused before anything is done: [ErrArgument].
//
// It writes Token and Owner: who reads them in another goroutine meanwhile sees to the order of that.
func (h *Hold) GiveWay(ctx context.Context, opts ...Option) (bool, error) {
	t, err := wayTerms(opts)
	if err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	r := h.locks.newRequest(ctx, &t)
	ended := ctx.Done()
	next, err := h.giveWay(&t, r)
	if next == nil {
		return false, err
	}
	if _, err := next.await(ctx, ended, r); err != nil {
		return false, err
	}
	return true, nil
}

func wayTerms(opts []Option) (terms, error) {
	t := newTerms(opts)
	others := t
	others.wait, others.bounded, others.least, others.gives = 0, false, leastAge, false
	switch {
	case t.err != nil:
		return t, t.err
	case others != newTerms(nil):
		return t, fmt.Errorf("%w: GiveWay has the options Wait and Least; the others stay as they are", ErrArgument)
	}
	return t, nil
}

// giveWay has both commands go out at once. It is nil if there is no need to, or that cannot be.
func (h *Hold) giveWay(t *terms, r *request) (*turn, error) {
	defer h.locks.lock()()
	before := h.turn
	if err := before.mayGiveWay(); err != nil {
		return nil, err
	}
	if !before.isHinted() || clock().Sub(before.since) < t.least {
		return nil, nil
	}
	next := &turn{
		hold: h, key: before.key, keys: before.keys, owner: before.owner, locks: h.locks, terms: before.terms, job: before.job,
		request: r, hints: &hints{}, behind: before, number: h.locks.next(),
	}
	h.next = next
	next.terms.wait, next.terms.bounded = t.wait, t.bounded
	if next.job == nil {
		next.owner = newOwner()
	}
	if link := before.link; link != nil {
		defer link.gather()()
	}
	before.depart().failed = func(err error) {
		if next.state == asking || next.state == granted {
			next.abandon(err)
		}
	}
	if next.job != nil {
		next.job.keys[next.key] = next // which is asked behind the release
	}
	next.enlist(before.session)
	if !r.ends.IsZero() {
		h.locks.lookAt(r.ends)
	}
	return next, nil
}

// mayGiveWay says why it cannot, whoever waits.
func (h *turn) mayGiveWay() error {
	err := h.ended()
	switch {
	case err != nil:
		return err
	case h.keys != nil:
		return fmt.Errorf("%w: a hold of several keys cannot give way", ErrArgument)
	case h.nested > 0:
		return fmt.Errorf("%w: %s is held by Again too: release that first, for all of them would give way", ErrArgument, h.key)
	}
	return nil
}

// become is called when a request was granted: what it was to come of is that from now on. Who wants to know of the
// loss of that learns of the loss of this.
func (h *turn) become() {
	hold, before := h.hold, h.hold.turn
	hold.Token, hold.Owner, hold.turn = h.token, h.owner, h
	if hold.next == h {
		hold.next = nil
		h.lost, h.onLost, before.lost, before.onLost = before.lost, before.onLost, nil, nil
	}
	if h.behind != nil && h.behind.leaving == 0 {
		h.behind = nil
	}
}

// forgo is called when a request has failed. A hold that was to come back by it is lost.
func (h *turn) forgo() {
	hold := h.hold
	if hold.next != h {
		return
	}
	hold.next, hold.forgone = nil, true
	before := hold.turn
	if before.reason == nil {
		before.reason = &LostError{hold.Key, "released"}
	}
	before.notifyLoss()
}

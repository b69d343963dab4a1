package rlock

import (
	"context"
	"slices"
	"time"
)

// Renewals by the program.

// Renew sets the lease to d from now, shorter too. Without [NoWatchdog] it is what the
// server renews the hold to from now on. It fails with [ErrLost] if the hold is lost.
func (hold *Hold) Renew(ctx context.Context, d time.Duration) error {
	t := terms{}
	if t.positive("the lease", d); t.err != nil {
		return t.err
	}
	locks := hold.locks
	done := make(chan error, 1)
	locks.mutex.Lock()
	h := hold.turn
	if err := h.ended(); err != nil {
		locks.mutex.Unlock()
		return err
	}
	renewal := &pendingCommand{kind: renewing, key: h.key,
		command: func(bool) []string {
			h.renewals++
			h.underway = append(h.underway, d)
			h.relet(min(d, h.terms.lease), clock().Add(d))
			return h.renewal(d)
		},
		answered: func(reply any, sent time.Time) bool { return h.renewed(d, reply, sent, done) },
	}
	lost := h.gone()
	h.session.addPending(renewal)
	locks.mutex.Unlock()
	timer := time.NewTimer(locks.timeout)
	defer timer.Stop()
	var err error
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		err = ctx.Err()
	case <-lost:
	case <-timer.C:
		err = &ConnectionError{errBroken}
	}
	defer locks.lock()()
	if err == nil {
		err = h.ended()
	}
	delete(renewal.session.pending, renewal)
	return err
}

func (h *turn) renewed(d time.Duration, reply any, sent time.Time, done chan error) bool {
	if i := slices.Index(h.underway, d); i >= 0 {
		h.underway = slices.Delete(h.underway, i, i+1)
	}
	err, isError := reply.(replyError)
	switch {
	case h.state != held:
		if h.reason != nil {
			done <- h.reason
		} else {
			done <- errReleased
		}
	case reply == errBroken:
		return false
	case isError && err.code() == "NOTHELD":
		h.lostAt(err)
		done <- h.reason
	case isError:
		done <- err.public()
	default:
		h.deadline = time.Time{}
		h.relet(d, sent.Add(d))
		done <- nil
	}
	return true
}

// relet has the lease be another, and end sooner than it does.
func (h *turn) relet(lease time.Duration, deadline time.Time) {
	if h.link != nil {
		h.link.unlease(&h.terms)
		h.link.lease(&h.terms, lease)
	}
	h.terms.lease = lease
	switch {
	case !h.deadline.IsZero() && !deadline.Before(h.deadline):
	case h.isKept():
		h.session.keep(h, deadline.Add(-lease))
	case !h.terms.watchdog:
		h.deadline = deadline
		h.timer.Reset(deadline.Sub(clock()))
	}
}

package rlock

import (
	"math"
	"time"
)

// What the server's watchdog does where there is none: the session renews its holds every third of
// their lease. They outlive the connection, and end when they could not be renewed in time.

// keep is called when the lease of a hold is known to run since then.
func (s *session) keep(h *turn, sent time.Time) {
	s.kept[h] = struct{}{}
	h.deadline, h.due = sent.Add(h.terms.lease), sent.Add(h.terms.lease/3)
	s.keepAt(h.due)
}

// unkeep is called when the hold is over, or the server's watchdog renews it.
func (s *session) unkeep(h *turn) { delete(s.kept, h) }

func (h *turn) isKept() bool {
	_, is := h.session.kept[h]
	return is
}

// keepAt has renewAll called then, or before.
func (s *session) keepAt(at time.Time) {
	if s.keeper == nil {
		s.keeper = time.AfterFunc(time.Hour, func() { s.locks.locked(s.renewAll) })
		s.keeper.Stop()
	}
	if s.keepsAt.IsZero() || at.Before(s.keepsAt) {
		s.keepsAt = at
		s.keeper.Reset(max(at.Sub(clock()), time.Millisecond))
	}
}

// renewAll renews all that are due, or will be soon, in one write; and ends those that could not be.
func (s *session) renewAll() {
	now := clock()
	if now.Sub(s.keepsAt) > late && !s.keepsLate {
		// This process itself was paused: the replies may lie there unread.
		s.keepsLate = true
		s.keepsAt = time.Time{}
		s.keepAt(now.Add(late / 2))
		return
	}
	s.keepsLate = false
	s.keepsAt = time.Time{}
	if s.link != nil {
		defer s.link.gather()()
	}
	next := time.Time{}
	for h := range s.kept {
		if !now.Before(h.deadline) {
			h.runOut()
			continue
		}
		if h.link != nil && !h.due.IsZero() && h.due.Sub(now) <= h.terms.lease/12 {
			h.renewNow()
		}
		at := h.deadline
		if h.link != nil && !h.due.IsZero() && h.due.Before(at) {
			at = h.due
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if !next.IsZero() {
		s.keepAt(next)
	}
}

// runOut ends a hold whose lease is over. A renewal may have been answered too late, so it is released.
func (h *turn) runOut() {
	h.leave(false)
	h.lose("lease")
}

func (h *turn) renewNow() {
	h.due = time.Time{} // until there is a reply
	renewals := h.renewals
	h.link.send(func(reply any, sent time.Time) {
		switch {
		case reply == errBroken || !h.isKept():
		case h.renewals == renewals:
			h.keptOn(reply, sent)
		case h.due.IsZero(): // the program's own renewal counts, if it comes about
			h.renewLater()
		}
	}, h.renewal(h.terms.lease)...)
}

// keptOn is called with the reply to a renewal by the session.
func (h *turn) keptOn(reply any, sent time.Time) {
	err, refused := reply.(replyError)
	switch {
	case !refused:
		h.session.keep(h, sent)
	case err.gone():
		h.lostAt(err)
	case err.elsewhere() && h.locks.router.elsewhere() != nil:
		h.regain()
	default: // until its deadline that may change
		h.renewLater()
	}
}

func (h *turn) renewLater() {
	h.due = clock().Add(h.terms.lease / 3)
	h.session.keepAt(h.due)
}

// lostAt ends a hold of which the server says that there is none.
func (h *turn) lostAt(err replyError) {
	if h.keys != nil && (h.state == held || h.state == granted) {
		h.leave(false) // the others
	}
	h.lose(h.goneFor(err))
}

// goneFor says why there is no such hold: where nobody notifies of it, as far as that can be told.
func (h *turn) goneFor(err replyError) string {
	switch {
	case h.session.backend == module:
		return "expired"
	case !clock().Before(h.deadline):
		return "lease"
	case err.code() == "WRONGTYPE":
		return "overwritten"
	}
	return "deleted"
}

// plus is a + b, and no more than there is: the longest times mean for ever.
func plus(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

package rlock

import (
	"sync/atomic"
	"time"
)

// A moment is a time by two clocks: Go's own stands still while the machine is suspended, and the wall clock may be set. What
// ends at a moment is over as soon as one of them has passed it. To read both takes a fifth of what clock takes.
type moment struct{ mono, wall int64 }

var origin = time.Now()

func thisMoment() moment {
	now := time.Now()
	return moment{int64(now.Sub(origin)), now.UnixNano()}
}

func (m moment) plus(d time.Duration) moment { return moment{m.mono + int64(d), m.wall + int64(d)} }

// ago is how long before at it was, by the clock that says more.
func (m moment) ago(at moment) time.Duration {
	return time.Duration(max(at.mono-m.mono, at.wall-m.wall))
}

// A bound is a moment that is read without the lock of the Locks. Zero: it has passed.
type bound struct{ mono, wall atomic.Int64 }

func (b *bound) set(m moment) {
	b.mono.Store(m.mono)
	b.wall.Store(m.wall)
}

// isAhead says whether at lies less than d behind it.
func (b *bound) isAhead(at moment, d time.Duration) bool {
	return at.mono < b.mono.Load()+int64(d) && at.wall < b.wall.Load()+int64(d)
}

// proved is what the link was proved by, for those who have not the lock of the Locks. It is kept up while there are any.
func (l *link) proved() *bound {
	if l.provedAt == nil {
		l.provedAt = &bound{}
		l.tellProof()
	}
	return l.provedAt
}

func (l *link) tellProof() {
	if l.provedAt != nil {
		l.provedAt.set(thisMoment().plus(-clock().Sub(l.proof)))
	}
}

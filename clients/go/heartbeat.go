package rlock

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// The heartbeat of a connection: a PING every third of the shortest lease. Is the newest
// answered command older than that lease, the server may have given all to others.

// With nothing held or asked for: a PING every 10 s.
const idleLease = 30 * time.Second

// A shorter lease counts as one of so long: no network answers as soon as that for certain, and
// with the connection all other holds would be lost too. One without the watchdog does not end with
// it.
const (
	leastLease      = 100 * time.Millisecond
	leastPlainLease = 5 * time.Second
)

// counted says what a lease is for the heartbeat.
func (t *terms) counted(lease time.Duration) time.Duration {
	if t.watchdog {
		return max(lease, leastLease)
	}
	return max(lease, leastPlainLease)
}

// lease says that a hold or a request has this lease now.
func (l *link) lease(t *terms, lease time.Duration) {
	lease = t.counted(lease)
	l.leases[lease]++
	l.shorten(lease)
}

// unlease says that one hold less has its lease.
func (l *link) unlease(t *terms) {
	lease := t.counted(t.lease)
	if l.leases[lease]--; l.leases[lease] <= 0 {
		delete(l.leases, lease)
	}
}

// shorten says that this is the shortest lease now, if it is.
func (l *link) shorten(lease time.Duration) {
	if lease < l.short {
		l.short, l.since = lease, clock()
		l.wind(l.since) // what was proved so far may be older than this
	}
}

// beat is called by the timer.
func (l *link) beat() {
	if l.closed {
		return
	}
	now, shortest := clock(), idleLease
	if len(l.leases) > 0 {
		shortest = slices.Min(slices.Collect(maps.Keys(l.leases)))
	}
	if now.Sub(l.due) > l.short/3 {
		// This process itself was paused: the replies may lie unread, and so may the news that the
		// connection was closed. Those are read first, and the server has a third to answer.
		l.spared = now.Add(l.short / 3)
	}
	if shortest > l.short {
		l.short = shortest
	} else {
		l.shorten(shortest)
	}
	proof := l.proof
	if proof.Before(l.since) {
		proof = l.since
	}
	end := later(proof.Add(l.short), l.spared)
	if !now.Before(end) {
		l.fail(fmt.Errorf("no reply for %v", l.short))
		return
	}
	if next := l.pinged.Add(l.short / 3); !now.Before(next) || l.pinged.Before(l.since) {
		l.pinged = now
		l.send(func(any, time.Time) {}, "PING")
		l.session.sendAllPending()
	}
	next := min(end.Sub(now), l.pinged.Add(l.short/3).Sub(now))
	if every := l.session.locks.askEvery; l.backend != module {
		if now.Sub(l.asked) >= every {
			l.asked = now
			l.askForModule()
		}
		next = min(next, l.asked.Add(every).Sub(now))
	}
	if !l.closed {
		l.wind(now.Add(next))
	}
}

// wind has beat called then.
func (l *link) wind(due time.Time) {
	l.due = due
	l.timer.Reset(due.Sub(clock()))
}

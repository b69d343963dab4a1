package rlock

import (
	"fmt"
	"math"
	"time"
)

// The heartbeat of a connection: every third of the shortest lease the server is told that this
// process lives, and for how long it may be silent (RLOCK.HEARTBEAT). One that cannot be told so is
// sent PING. Is the newest answered command older than that lease, the server may have given all to
// others.

// With nothing held or asked for: every 10 s.
const idleLease = 30 * time.Second

// A shorter lease counts as one of so long: no network answers as soon as that for certain, and
// with the connection all other holds would be lost too. One without the watchdog does not end with
// it.
const (
	leastLease      = 100 * time.Millisecond
	leastPlainLease = 5 * time.Second
)

// A server looks some ten times a second who is silent.
const leastPatience = 300 * time.Millisecond

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
	l.many(t)[lease]++
	l.shorten(lease)
	if t.watchdog && lease > l.told {
		l.live() // a hold may be silent for as long as its lease at least
	}
}

// many says how many requests and holds like this one have which lease.
func (l *link) many(t *terms) map[time.Duration]int {
	if t.watchdog {
		return l.watched
	}
	return l.plain
}

// unlease says that one hold less has its lease.
func (l *link) unlease(t *terms) {
	lease, many := t.counted(t.lease), l.many(t)
	if many[lease]--; many[lease] <= 0 {
		delete(many, lease)
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
	now, shortest := clock(), l.shortest()
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
		l.live()
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

// live says that this process lives, and for how long it may be silent. Where the server is not to be
// told that, it is asked whether it lives itself.
func (l *link) live() {
	l.pinged = clock()
	if l.pings {
		l.send(func(any, time.Time) {}, "PING")
		return
	}
	l.told = max(l.session.locks.patience, leastPatience)
	for lease := range l.watched {
		l.told = max(l.told, lease)
	}
	l.send(func(reply any, _ time.Time) {
		// It is too old, or this user may not. That is an answer too.
		if err, _ := reply.(replyError); err.unknown() || err.code() == "NOPERM" {
			l.onlyPing()
		}
	}, heartbeat, ms(l.told))
}

const heartbeat = "RLOCK.HEARTBEAT"

// onlyPing has this connection never say again that this process lives.
func (l *link) onlyPing() { l.pings, l.told = true, math.MaxInt64 }

// shortest is the shortest lease that there is.
func (l *link) shortest() time.Duration {
	shortest := time.Duration(math.MaxInt64)
	for _, many := range []map[time.Duration]int{l.watched, l.plain} {
		for lease := range many {
			shortest = min(shortest, lease)
		}
	}
	if len(l.watched)+len(l.plain) == 0 {
		return idleLease
	}
	return shortest
}

// wind has beat called then.
func (l *link) wind(due time.Time) {
	l.due = due
	l.timer.Reset(due.Sub(clock()))
}

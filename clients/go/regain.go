package rlock

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Where the loss of a hold is notified, when that is not the channel that it was granted on.

// regain asks on the next connection for a hold that outlives its own, and subscribes to its loss. Its deadline
// stays: the server is given what is left of it.
func (h *turn) regain() {
	if h.regaining != nil {
		return
	}
	t := &pendingCommand{kind: regaining, key: h.key}
	var words []string
	t.command = func(bool) []string {
		isKept := h.isKept()
		delete(h.session.holds, h)
		h.session.unkeep(h)
		h.session = t.session // in a cluster its slot may have moved meanwhile
		h.session.holds[h] = struct{}{}
		if isKept {
			h.session.kept[h], h.due = struct{}{}, time.Time{}
			h.session.keepAt(h.deadline)
		}
		// It watches none of several keys that it did not give.
		words = h.regainOn(h.session.link, isKept && h.session.backend == module && h.keys == nil)
		return words
	}
	t.answered = func(reply any, sent time.Time) bool {
		if reply == errBroken {
			return false
		}
		if h.state == held && h.session.link.refusesHints(words, reply) {
			h.session.sendPending(t)
			return false
		}
		h.regaining = nil
		if _, refused := reply.(replyError); !h.isKept() {
			h.regainReplied(reply)
		} else if h.session.backend == module && h.keys == nil && !refused {
			h.session.unkeep(h)
		} else {
			h.keptOn(reply, sent)
		}
		return true
	}
	h.regaining = t
	h.session.addPending(t)
}

// regainOn is the command that subscribes to its loss on the connection, by a new tag.
func (h *turn) regainOn(l *link, watch bool) []string {
	if h.link != nil {
		h.link.forget(h)
	}
	l.enter(h)
	h.regained = l.backend == module
	return h.subscription(watch)
}

// subscription has the server notify of the hold where its link is.
func (h *turn) subscription(watch bool) []string {
	words := append(h.renewal(h.sameLease()), "NOTIFY", h.link.channel, strconv.FormatUint(h.tag, 10))
	if watch {
		words = append(words, "WATCHDOG")
	}
	return h.withHints(words)
}

// sameLease is what leaves its deadline as it is, and also what a renewal under way sets.
func (h *turn) sameLease() time.Duration {
	var asked time.Duration
	if n := len(h.underway); n > 0 {
		asked = h.underway[n-1]
	}
	switch {
	case h.state == held && !h.terms.watchdog:
		return max(h.deadline.Sub(clock()), asked, 1)
	case asked > 0:
		return asked
	}
	return h.terms.lease
}

// regainReplied learns from the reply whether there is still such a hold.
func (h *turn) regainReplied(reply any) {
	switch err, _ := reply.(replyError); {
	case err.code() != "NOTHELD":
	case h.leaving > 0: // released meanwhile: the reply to that is on its way
		h.reason = &LostError{h.key, h.goneFor(err)}
	default:
		h.lostAt(err)
	}
}

// moveChannel takes another channel, for another node has the slot of this one: in the slot of
// a hold that is still here. Without such a hold a new connection costs nothing.
func (l *link) moveChannel() {
	if l.backend != module {
		return // nobody speaks there
	}
	l.deaf = true
	moved := slot(l.channel)
	var stays *turn
	for _, h := range l.table {
		switch {
		case h.state == asking: // all waits here are over
			h.request.queued = false
			l.forget(h)
		case h.state == abandoned:
			h.callOff()
		case slot(h.key) != moved:
			stays = h
		}
	}
	if stays == nil {
		l.fail(errors.New("the slot of the channel has moved"))
		return
	}
	l.channel = channelAt(stays.key)
	l.send(func(reply any, _ time.Time) {
		if err, refused := reply.(replyError); refused {
			l.fail(err)
		} else if !l.closed {
			l.deaf = false
			l.regainHere()
		}
	}, "SSUBSCRIBE", l.channel)
}

// regainHere subscribes to the loss of all holds on the new channel, and asks for what was not asked for.
func (l *link) regainHere() {
	for _, h := range slices.Collect(maps.Values(l.table)) {
		if h.state == held && !h.terms.watchdog {
			h.regain()
		} else {
			l.regainWatched(h)
		}
	}
	l.session.sendAllPending()
	l.session.ask()
}

func (l *link) regainWatched(h *turn) {
	words := h.regainOn(l, false)
	l.send(func(reply any, _ time.Time) {
		switch err, refused := reply.(replyError); {
		case !refused || h.link != l:
		case err.code() == "NOTHELD":
			h.regainReplied(reply)
		case err.code() == "MOVED" || err.code() == "ASK":
			h.message("lost", "moved")
		case l.refusesHints(words, reply):
			l.regainWatched(h)
		default:
			l.fail(err)
		}
	}, words...)
}

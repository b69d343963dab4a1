package rlock

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// Where the loss of a hold is notified, when that is not the channel that it was granted on.

// regain asks on the next connection for a hold that outlives its own, and subscribes to its loss. Its deadline
// stays: the server is given what is left of it.
func (h *Hold) regain() {
	if h.regaining != nil {
		return
	}
	t := &pendingCommand{kind: regaining, key: h.Key}
	t.command = func(bool) []string {
		delete(h.session.holds, h)
		h.session = t.session // in a cluster its slot may have moved meanwhile
		h.session.holds[h] = struct{}{}
		return h.regainOn(h.session.link, max(time.Until(h.deadline), 1))
	}
	t.answered = func(reply any, _ time.Time) bool {
		if reply == errBroken {
			return false
		}
		h.regaining = nil
		h.regainReplied(reply)
		return true
	}
	h.regaining = t
	h.session.addPending(t)
}

// regainOn is the command that subscribes to its loss on the connection, by a new tag.
func (h *Hold) regainOn(l *link, lease time.Duration) []string {
	if h.link != nil {
		h.link.forget(h)
	}
	tag := l.enter(h)
	h.regained = true
	return append(h.renewal(lease), "NOTIFY", l.channel, tag)
}

// regainReplied learns from the reply whether there is still such a hold.
func (h *Hold) regainReplied(reply any) {
	switch err, _ := reply.(replyError); {
	case err.code() != "NOTHELD":
	case h.leaving > 0: // released meanwhile: the reply to that is on its way
		h.reason = &LostError{h.Key, "expired"}
	default:
		if h.state == held && h.keys != nil {
			h.leave(false)
		}
		h.lose("expired")
	}
}

// moveChannel takes another channel, for another node has the slot of this one: in the slot of
// a hold that is still here. Without such a hold a new connection costs nothing.
func (l *link) moveChannel() {
	l.deaf = true
	moved := slot(l.channel)
	var stays *Hold
	for _, h := range l.table {
		switch {
		case h.state == asking: // all waits here are over
			h.request.queued = false
			l.forget(h)
		case h.state == abandoned:
			h.callOff()
		case slot(h.Key) != moved:
			stays = h
		}
	}
	if stays == nil {
		l.fail(errors.New("the slot of the channel has moved"))
		return
	}
	l.channel = channelAt(stays.Key)
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
			continue
		}
		l.send(func(reply any, _ time.Time) {
			switch err, refused := reply.(replyError); {
			case !refused || h.link != l:
			case err.code() == "NOTHELD":
				h.regainReplied(reply)
			case err.code() == "MOVED" || err.code() == "ASK":
				h.message("lost", "moved")
			default:
				l.fail(err)
			}
		}, h.regainOn(l, h.terms.lease)...)
	}
	l.session.sendAllPending()
	l.session.ask()
}

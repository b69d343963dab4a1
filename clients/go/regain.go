package rlock

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// Where the loss of a hold is told, when that is not the channel that it was granted on.

// tellAgain has a hold that outlives its connection told of on the next one. Its deadline
// stays: the server is given what is left of it.
func (h *Hold) tellAgain() {
	if h.telling != nil {
		return
	}
	t := &task{kind: telling, key: h.Key}
	t.say = func(bool) []string {
		delete(h.session.holds, h)
		h.session = t.session // in a cluster its slot may have moved meanwhile
		h.session.holds[h] = struct{}{}
		return h.tellOn(h.session.link, max(time.Until(h.deadline), 1))
	}
	t.told = func(reply any, _ time.Time) bool {
		if reply == errBroken {
			return false
		}
		h.telling = nil
		h.toldOn(reply)
		return true
	}
	h.telling = t
	h.session.take(t)
}

// tellOn is the command that has it told of on the connection, by a new tag.
func (h *Hold) tellOn(l *link, lease time.Duration) []string {
	if h.link != nil {
		h.link.forget(h)
	}
	tag := l.enter(h)
	h.regained = true
	return append(h.renewal(lease), "NOTIFY", l.channel, tag)
}

// toldOn hears whether there is still such a hold.
func (h *Hold) toldOn(reply any) {
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
			l.tellHere()
		}
	}, "SSUBSCRIBE", l.channel)
}

// tellHere has all holds told of on the new channel, and asks for what was not asked for.
func (l *link) tellHere() {
	for _, h := range slices.Collect(maps.Values(l.table)) {
		if h.state == held && !h.terms.watchdog {
			h.tellAgain()
			continue
		}
		l.send(func(reply any, _ time.Time) {
			switch err, refused := reply.(replyError); {
			case !refused || h.link != l:
			case err.code() == "NOTHELD":
				h.toldOn(reply)
			case err.code() == "MOVED" || err.code() == "ASK":
				h.message("lost", "moved")
			default:
				l.fail(err)
			}
		}, h.tellOn(l, h.terms.lease)...)
	}
	l.session.again()
	l.session.ask()
}

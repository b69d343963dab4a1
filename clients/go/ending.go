package rlock

import "time"

// How requests end that become no hold.

// refuse ends a request that has nothing.
func (h *Hold) refuse(err error) {
	was := h.state
	h.settle()
	h.free()
	if was == asking || was == granted {
		h.finish(err)
	}
}

func (h *Hold) finish(err error) {
	h.request.err = err
	close(h.request.done)
}

// settle takes the hold out of all tables.
func (h *Hold) settle() {
	if h.link != nil {
		h.link.forget(h)
	}
	delete(h.session.requests, h)
	delete(h.session.holds, h)
	h.session.unkeep(h)
	if h.state == held {
		for _, key := range h.Keys() {
			if h.locks.held[key] == h {
				delete(h.locks.held, key)
			}
		}
	}
	for _, t := range []*pendingCommand{h.regaining, h.canceling} {
		if t != nil {
			delete(t.session.pending, t)
		}
	}
	h.state = over
	h.hints.wake()
	if h.timer != nil {
		h.timer.Stop()
	}
}

// abandon ends the request for the program, at once. The server is notified.
func (h *Hold) abandon(err error) {
	switch {
	case h.state == granted:
		h.reject(err)
	case h.link != nil:
		h.state = abandoned // until its end is notified, so that a grant that crosses is released
		delete(h.session.requests, h)
		h.cancelHere()
		h.finish(err)
	default:
		asked := h.request.asked
		h.state = abandoned
		h.settle()
		h.finish(err)
		if asked {
			h.callOff() // the server may keep its place
		} else {
			h.free()
		}
	}
}

// callOff ends on the next connection what may be left of a request that was abandoned.
func (h *Hold) callOff() {
	h.settle()
	h.cleanUp(func(bool) []string { return h.cancel() })
	h.leave(false)
}

// cancelHere cancels the wait on the connection that it was asked on: again, if that is refused,
// until its end is notified there.
func (h *Hold) cancelHere() {
	if h.link.backend != module {
		// Nothing waits on the server; a try that is under way has a reply.
		h.stepOut()
		if h.request.tries == 0 {
			h.refuse(nil)
		}
		return
	}
	h.canceling = &pendingCommand{key: h.Key, command: func(bool) []string { return h.cancel() },
		answered: func(reply any, _ time.Time) bool {
			_, refused := reply.(replyError)
			return !refused || h.state != abandoned
		}}
	h.session.addPending(h.canceling)
}

package rlock

import (
	"context"
	"errors"
	"time"
)

// How requests end that become no hold.

// expireWith ends it with its context, also if that does not come to say why: it is the program's
// code, which may panic or end its goroutine.
func (h *turn) expireWith(ctx context.Context) {
	why, canceled := error(context.Canceled), true
	defer func() {
		h.locks.locked(func() {
			if h.state == asking || h.state == granted {
				h.expire(why, canceled)
			}
		})
	}()
	why = ctx.Err()
	canceled = errors.Is(why, context.Canceled)
}

// expire ends a request whose time is over, or its context. What the server did not say, though
// it had time for it, is reported as the lack of a connection.
func (h *turn) expire(ended error, canceled bool) {
	err := ended
	if ended == nil || h.state == asking && !h.request.queued && !canceled {
		err = &ConnectionError{errors.Join(ended, h.session.failure)}
	}
	h.abandon(err)
}

// refuse ends a request that has nothing.
func (h *turn) refuse(err error) {
	was := h.state
	h.settle()
	h.free()
	if was == asking || was == granted {
		h.finish(err)
	}
}

func (h *turn) finish(err error) {
	h.request.err = err
	h.forgo()
	close(h.request.done)
	if h.stay != nil {
		h.stay.failed(h, err)
	}
}

// settle takes the hold out of all tables.
func (h *turn) settle() {
	if h.link != nil {
		h.link.forget(h)
	}
	delete(h.session.requests, h)
	delete(h.session.holds, h)
	h.session.unkeep(h)
	if h.state == held {
		for _, key := range h.keyList() {
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
func (h *turn) abandon(err error) {
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
func (h *turn) callOff() {
	h.settle()
	h.cleanUp(func(bool) []string { return h.cancel() })
	h.leave(false)
}

// cancelHere cancels the wait on the connection that it was asked on: again, if that is refused,
// until its end is notified there.
func (h *turn) cancelHere() {
	if h.link.backend != module {
		// Nothing waits on the server; a try that is under way has a reply.
		h.stepOut()
		if h.request.tries == 0 {
			h.refuse(nil)
		}
		return
	}
	h.canceling = &pendingCommand{key: h.key, command: func(bool) []string { return h.cancel() },
		answered: func(reply any, _ time.Time) bool {
			_, refused := reply.(replyError)
			return !refused || h.state != abandoned
		}}
	h.session.addPending(h.canceling)
}

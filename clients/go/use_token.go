package rlock

import (
	"fmt"
	"time"
)

// The tokens of uses. That of an acquisition is for the first use that reads it; each other one asks for a new one.

// A tokenAsked is a use that asks for its token.
type tokenAsked struct {
	use   *Use
	token int64
	err   error
	done  chan struct{} // closed with either; nil: at once
	read  func()        // reads the reply, if that is for the call to do
}

func (u *Use) askToken() *tokenAsked {
	s, h := u.sticky, u.turn
	defer s.locks.lock()()
	h.look()
	switch {
	case h.reason != nil:
		return &tokenAsked{err: h.reason}
	case s.user.Load() != u:
		return &tokenAsked{err: fmt.Errorf("%w: the use is over", ErrArgument)}
	case u.token != 0:
	case !s.read:
		s.read, u.token = true, h.token
	case h.link == nil:
		s.unsure = true
		return &tokenAsked{err: &ConnectionError{errBroken}}
	default:
		return s.renew(u, h)
	}
	return &tokenAsked{token: u.token}
}

func (s *Sticky) renew(u *Use, h *turn) *tokenAsked {
	t := &tokenAsked{use: u, done: make(chan struct{})}
	t.read = h.session.led(func() {
		h.link.send(func(reply any, _ time.Time) {
			err, refused := reply.(replyError)
			token, isToken := reply.(int64)
			switch {
			case t.isOver(): // nobody asks any more
			case isToken:
				u.token = max(u.token, token)
				t.token = u.token
				close(t.done)
			case refused && err.gone():
				h.lostAt(err)
				s.failToken(t, h.loss())
			case refused:
				s.failToken(t, err.public())
			case h.reason != nil:
				s.failToken(t, h.reason)
			default:
				s.failToken(t, &ConnectionError{errBroken})
			}
		}, append(h.renewal(h.terms.lease), "TOKEN")...)
	})
	return t
}

func (t *tokenAsked) isOver() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// failToken has the lock go back at the end of the use: which token is its newest nobody knows.
func (s *Sticky) failToken(t *tokenAsked, err error) {
	if t.err = err; s.turn == t.use.turn {
		s.unsure = true
	}
	close(t.done)
	s.look()
}

// forgoToken is called when it is waited for no longer.
func (s *Sticky) forgoToken(t *tokenAsked, err error) {
	defer s.locks.lock()()
	if !t.isOver() {
		s.failToken(t, err)
	}
}

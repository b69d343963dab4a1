package rlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The uses of a sticky lock that wait.

// A waiting is a use that waits for its turn.
type waiting struct {
	use     *Use
	began   time.Time
	overdue bool
	done    chan struct{} // closed when it has the lock, or with err
	err     error
}

// await has the use wait for its turn.
func (s *Sticky) await(ctx context.Context, u *Use) error {
	w := &waiting{use: u, began: time.Now(), done: make(chan struct{})}
	has := false
	defer func() {
		if !has { // or ctx, which is the program's, has panicked
			s.locks.locked(func() { s.giveUp(w) })
		}
	}()
	if outer, _ := ctx.Value(s).(*Use); outer != nil && s.user.Load() == outer {
		return fmt.Errorf("rlock: a use of %s within a use of it would wait for itself", s.key)
	}
	ended := ctx.Done()
	session, err := s.locks.router.session(ctx, s.key)
	if err != nil {
		return err
	}
	var read func()
	s.locks.locked(func() { read = session.led(func() { s.begin(w, session) }) })
	read()
	due, spared := time.Now().Add(s.wait), false
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	for {
		select {
		case <-w.done:
			has = w.err == nil
			return w.err
		case <-ended:
			return s.expired(ctx.Err())
		case <-timer.C:
			if time.Since(due) > late && !spared {
				// This process itself was paused: the answer may lie there unread.
				spared = true
				timer.Reset(grace / 2)
				continue
			}
			s.locks.locked(func() {
				left := s.expire(w)
				due = time.Now().Add(left)
				timer.Reset(left)
			})
		}
	}
}

// begin puts it into the line.
func (s *Sticky) begin(w *waiting, at *session) {
	switch {
	case s.locks.closed:
		s.answer(w, ErrClosed)
	case s.closed:
		s.answer(w, &stickyClosed{s.key})
	default:
		s.session = at
		s.locks.stays[s] = struct{}{}
		s.line = append(s.line, w)
		s.waits.Add(1)
	}
	s.look()
}

// giveUp is called when nobody wants that use any more, whatever has become of it.
func (s *Sticky) giveUp(w *waiting) {
	if slices.Contains(s.line, w) {
		s.remove(w, nil)
	} else {
		s.user.CompareAndSwap(w.use, nil)
	}
	s.look()
}

func (s *Sticky) give(at moment) {
	w := s.line[0]
	s.line[0] = nil
	s.line = s.line[1:]
	s.waits.Add(-1)
	s.served = true
	w.use.turn, w.use.Owner = s.turn, s.turn.owner
	s.user.Store(w.use)
	s.mark(at) // before it can end
	s.answer(w, nil)
}

func (s *Sticky) answer(w *waiting, err error) {
	w.err = err
	close(w.done)
}

// remove takes one out of the line. The last one takes the request along.
func (s *Sticky) remove(w *waiting, err error) {
	i := slices.Index(s.line, w)
	s.line = slices.Delete(s.line, i, i+1)
	s.waits.Add(-1)
	s.answer(w, err)
	if h := s.turn; len(s.line) == 0 && h != nil && h.state == asking {
		s.turn = nil
		h.abandon(errReleased)
	}
}

func (s *Sticky) removeAll(err error) {
	for len(s.line) > 0 {
		s.remove(s.line[0], err)
	}
}

// expire is called when the time of a use is over; for how long it goes on.
func (s *Sticky) expire(w *waiting) time.Duration {
	if !slices.Contains(s.line, w) {
		return time.Hour
	}
	w.overdue = true
	left := s.locks.timeout - time.Since(w.began) // without a word of the server
	err := s.notAcquired()
	switch {
	case err != nil:
	case left > 0:
		return left
	default:
		err = &ConnectionError{s.trouble()}
	}
	s.remove(w, err)
	return time.Hour
}

// notAcquired is nil if nobody has said that somebody has it.
func (s *Sticky) notAcquired() error {
	switch h := s.turn; {
	case h == nil:
	case s.isUsed():
		return &NotAcquiredError{s.key, h.owner}
	case h.state == asking && h.request.queued:
		return h.notAcquired()
	}
	return nil
}

func (s *Sticky) trouble() error {
	if s.turn != nil && s.turn.session.failure != nil {
		return s.turn.session.failure
	}
	return errors.New("no answer")
}

// expired is the error of a use whose context has ended.
func (s *Sticky) expired(ended error) error {
	defer s.locks.lock()()
	if h := s.turn; !errors.Is(ended, context.Canceled) && h != nil && h.state == asking && !h.request.queued {
		return &ConnectionError{errors.Join(ended, s.trouble())}
	}
	return ended
}

// stands is called when the server has said that somebody else has it: so much is known for whose time is over.
func (s *Sticky) stands(h *turn) {
	if s.turn != h {
		return
	}
	for _, w := range slices.Clone(s.line) {
		if w.overdue {
			s.remove(w, h.notAcquired())
		}
	}
}

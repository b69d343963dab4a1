package rlock

import (
	"context"
	"time"
)

// Whether somebody waits for a hold. The server says so to who has asked, by the word WANTED behind
// where a hold is notified.
const wantedWord = "WANTED"

// A server that could not do what it was asked is asked again after so long.
const askHintsAgain = time.Second

type hints struct {
	asked *link         // where the server was asked
	said  time.Time     // when it last said that somebody waits
	next  chan struct{} // closed when it says so, or the hold is over; nil: nobody waits for that
}

// Wanted says whether somebody waits whom the release of the hold would serve: whether the server
// has said so within the last half of the lease. It is a hint: it may come late, and be out of
// date. The first use asks the server for it, without waiting, so it is false then. It
// is always false for a hold of several keys, of one that is over, and without the module.
func (h *Hold) Wanted() bool {
	defer h.locks.lock()()
	return h.turn.isHinted()
}

// AwaitWanted waits until the hold is [Hold.Wanted], or ctx ends, or the hold is over: then it fails
// with [ErrLost], or says that it was released.
func (h *Hold) AwaitWanted(ctx context.Context) error {
	turn, next, err := h.nextHint()
	if next == nil {
		return err
	}
	select {
	case <-next:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer h.locks.lock()()
	return turn.ended()
}

func (h *Hold) nextHint() (*turn, <-chan struct{}, error) {
	defer h.locks.lock()()
	next, err := h.turn.nextHint()
	return h.turn, next, err
}

// nextHint is nil if the hold is wanted, or has ended.
func (h *turn) nextHint() (<-chan struct{}, error) {
	if err := h.listen(); err != nil || h.hints.areFresh(h.terms.lease) {
		return nil, err
	}
	if h.hints.next == nil {
		h.hints.next = make(chan struct{})
	}
	return h.hints.next, nil
}

// isHinted has the server say so from now on, and says whether it has.
func (h *turn) isHinted() bool { return h.listen() == nil && h.hints.areFresh(h.terms.lease) }

// listen has the server say from now on whether the hold is wanted, unless it has ended.
func (h *turn) listen() error {
	if err := h.ended(); err != nil {
		return err
	}
	if h.hints == nil {
		h.hints = &hints{}
	}
	h.askHints()
	return nil
}

// mayBeHinted says whether the server may be asked where the link of the hold is. MRENEW does not know the word.
func (h *turn) mayBeHinted() bool {
	return h.hints != nil && h.keys == nil && h.link.backend == module && !h.link.unhinted
}

// withHints has a command that is about to be sent where the link of the hold is ask for them too, if that may be.
func (h *turn) withHints(words []string) []string {
	if !h.mayBeHinted() {
		return words
	}
	h.hints.asked = h.link
	return append(words, wantedWord)
}

// askHints asks once on each connection. Where there is none, the next one begins with that.
func (h *turn) askHints() {
	l := h.link
	if h.state != held || l == nil || h.hints.asked == l || !h.mayBeHinted() {
		return
	}
	words := h.subscription(h.terms.watchdog)
	l.send(func(reply any, _ time.Time) {
		err, refused := reply.(replyError)
		switch {
		case !refused || l.refusesHints(words, reply) || h.state != held || h.link != l:
		case err.gone():
			h.lostAt(err)
		default:
			time.AfterFunc(askHintsAgain, func() {
				defer h.locks.lock()()
				if h.hints.asked == l {
					h.hints.asked = nil
				}
				h.askHints()
			})
		}
	}, words...)
}

// refusesHints says whether this reply is that of an older module, or to a user who may not ask. Then
// nobody asks on this connection again.
func (l *link) refusesHints(words []string, reply any) bool {
	err, _ := reply.(replyError)
	refuses := err.code() == "NOPERM" || err.isSyntax()
	if !refuses || words[len(words)-1] != wantedWord {
		return false
	}
	l.unhinted = true
	return true
}

// isWanted is called when the server says so.
func (h *turn) isWanted() {
	if h.hints == nil {
		h.hints = &hints{}
	}
	h.hints.said = clock()
	h.hints.wake()
	if h.stay != nil {
		h.stay.look()
	}
}

// areFresh says whether the last one is newer than half a lease: nobody says that nobody waits any more.
func (s *hints) areFresh(lease time.Duration) bool {
	return !s.said.IsZero() && clock().Sub(s.said) < lease/2
}

func (s *hints) wake() {
	if s != nil && s.next != nil {
		close(s.next)
		s.next = nil
	}
}
